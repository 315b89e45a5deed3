"""Readers of what users have: archives and trees of image folders, and the official CIFAR archives."""

from suite.data.readers.cifar import read_cifar
from suite.data.readers.folders import read_folders
from suite.data.readers.source import Source, SplitRule

__all__ = ["Source", "SplitRule", "read_cifar", "read_folders"]
