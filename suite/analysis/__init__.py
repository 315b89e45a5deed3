"""What is computed from stored results."""
