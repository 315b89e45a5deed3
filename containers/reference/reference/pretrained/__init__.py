"""Continual learners on a pretrained vision transformer, one module a method."""
