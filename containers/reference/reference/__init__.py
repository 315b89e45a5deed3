"""Reference learners: one short module per method, on shared networks, memory, losses and one training engine."""
