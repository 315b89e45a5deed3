"""One trial, the two phases of GTEP, selection, budgets and failures."""
