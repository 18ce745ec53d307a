"""Bundled real data to try things on; `data/README.md` tells where it comes from.

>>> survey = rand_hie()
>>> len(survey["person"]), len(set(survey["person"].tolist()))
(20190, 5912)
"""

from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import files
from typing import Any

import numpy as np

__all__ = ["rand_hie"]


def rand_hie() -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """The RAND Health Insurance Experiment by columns: one row for each person and study year."""
    packed = files("discreet").joinpath("data/rand_hie.csv.gz").read_bytes()
    rows = csv.reader(io.StringIO(gzip.decompress(packed).decode("ascii")))
    names = next(rows)
    columns = zip(*rows, strict=True)
    return {name: _typed(name, column) for name, column in zip(names, columns, strict=True)}


def _typed(name: str, column: tuple[str, ...]) -> np.ndarray[Any, np.dtype[Any]]:
    kind: type = {"health": str, "spending": np.float64}.get(name, np.int64)
    return np.array(column, dtype=kind)
