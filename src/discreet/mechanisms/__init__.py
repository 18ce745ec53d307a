"""The basic mechanisms: frozen, checked when built, each with its events, loss, accuracy and release."""

from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.neighbour_set import NeighbourSet
from discreet.mechanisms.quantiles.mechanism import Quantile, Quantiles
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.mechanisms.staircase import Staircase

__all__ = [
    "Exponential",
    "Gaussian",
    "Laplace",
    "NeighbourSet",
    "NoisyMax",
    "PermuteAndFlip",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "SparseVector",
    "Staircase",
]
