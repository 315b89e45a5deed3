"""A containerised benchmark suite for continual learning."""

__version__ = "0.1.0"
