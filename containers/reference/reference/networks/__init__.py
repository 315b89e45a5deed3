"""Backbones and networks that grow with the classes."""
