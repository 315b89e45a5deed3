"""CLDyB: search for challenging task sequences, and their files."""
