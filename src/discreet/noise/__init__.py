"""The only randomness: exact samplers on the integers, fed by one cryptographic generator.

>>> from discreet.noise import discrete_laplace, discrete_gaussian
>>> discrete_laplace(scale=1000, size=3).dtype
dtype('int64')
"""

from discreet.noise.entropy import Entropy, system
from discreet.noise.exponential import bernoulli_exp, gibbs, heads
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.grid import INTEGERS, Grid
from discreet.noise.laplace import discrete_laplace, geometric
from discreet.noise.staircase import discrete_staircase, optimal_inner
from discreet.noise.uniform import bernoulli, categorical, permutation, uniform

__all__ = [
    "INTEGERS",
    "Entropy",
    "Grid",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "geometric",
    "gibbs",
    "heads",
    "optimal_inner",
    "permutation",
    "system",
    "uniform",
]
