"""Tiny data sets with recognisable pixels, written through the real writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from suite.data import ClassPlan, DataSet, Origin, Plan, Writer, write_data_set

ORIGIN = Origin(source="made by a test", licence="none", split="source")

MakeDataSet = Callable[..., DataSet]


def pixels(split: str, index: int, count: int, resolution: int) -> np.ndarray:
    """Random but reproducible images; no two are equal."""
    rng = np.random.default_rng([len(split), index])
    return rng.integers(0, 256, (count, resolution, resolution, 3), dtype=np.uint8)


@pytest.fixture
def make_data_set(tmp_path: Path) -> MakeDataSet:
    """A function that writes a data set with the given (train, test) counts per class."""

    def make(counts: Sequence[tuple[int, int]], resolution: int = 8, name: str = "tiny") -> DataSet:
        classes = [ClassPlan(f"class {i}", train, test) for i, (train, test) in enumerate(counts)]

        def fill(writer: Writer) -> None:
            for i, (train, test) in enumerate(counts):
                writer.put("train", i, 0, pixels("train", i, train, resolution))
                writer.put("test", i, 0, pixels("test", i, test, resolution))

        return write_data_set(tmp_path / "data" / name, Plan(name, 1, resolution, classes, ORIGIN), fill)

    return make
