"""Deliberately broken mechanisms, each with the guarantee it claims and a pair of data sets that refutes it.

`ZOO` holds them all; `HONEST` holds look-alikes that keep their word. None of this is for use: the noise is numpy's.
"""

from .calibration import CALIBRATION
from .floats import FLOATS
from .honest import HONEST
from .leaks import LEAKS
from .sampling import SAMPLING
from .selection import SELECTION
from .sparse_vector import SPARSE_VECTOR
from .specimen import Specimen

ZOO = [*CALIBRATION, *FLOATS, *LEAKS, *SAMPLING, *SELECTION, *SPARSE_VECTOR]

__all__ = ["HONEST", "ZOO", "Specimen"]
