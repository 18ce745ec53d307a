"""What events cost: from events to losses, between losses, and from budgets to noise.

A loss bounds what an observer of all outputs can learn about one unit. Every number here is a proven bound, rounded to
the safe side.

>>> from fractions import Fraction
>>> from discreet.core.events import Gaussian, Laplace
>>> from discreet.core.losses import ApproxDP, PureDP, ZCDP
>>> account([Laplace(Fraction(100), 1)] * 50, like=PureDP)
PureDP(epsilon=0.5)
>>> convert(ZCDP("0.1"), ApproxDP, delta="1e-6")
ApproxDP(epsilon=2.14194, delta=1e-06)

* `account` bounds a list of events in any definition; `pure`, `approximate`, `zcdp`, `renyi` and `pld` are the
  accountants behind it.
* `convert` and `affordable` go between definitions; `basic`, `advanced`, `heterogeneous` and `optimal` are the
  composition theorems; `group` extends a guarantee to several units.
* `Filter` keeps a budget and `Odometer` a running bound when events are chosen along the way.
* `calibrate` finds the least noise for a budget, with `laplace_scale` and `gaussian_sigma` in closed form.
"""

from discreet.accounting.accountants import account
from discreet.accounting.approximate import approximate
from discreet.accounting.calibration import (
    calibrate,
    gaussian_budget,
    gaussian_sigma,
    gaussian_sigma_classic,
    gaussian_sigma_continuous,
    laplace_budget,
    laplace_scale,
    within,
)
from discreet.accounting.composition import advanced, basic, heterogeneous, optimal
from discreet.accounting.conversions import affordable, convert, delta_at, epsilon_at, simple_zcdp_epsilon
from discreet.accounting.filters import Filter
from discreet.accounting.group import group
from discreet.accounting.odometers import Odometer
from discreet.accounting.pld import distribution as pld
from discreet.accounting.pure import pure
from discreet.accounting.renyi import renyi
from discreet.accounting.zcdp import zcdp

__all__ = [
    "Filter",
    "Odometer",
    "account",
    "advanced",
    "affordable",
    "approximate",
    "basic",
    "calibrate",
    "convert",
    "delta_at",
    "epsilon_at",
    "gaussian_budget",
    "gaussian_sigma",
    "gaussian_sigma_classic",
    "gaussian_sigma_continuous",
    "group",
    "heterogeneous",
    "laplace_budget",
    "laplace_scale",
    "optimal",
    "pld",
    "pure",
    "renyi",
    "simple_zcdp_epsilon",
    "within",
    "zcdp",
]
