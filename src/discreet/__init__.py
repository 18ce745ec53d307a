"""Private answers from sensitive data: exact noise, derived guarantees, honest error bars.

>>> import discreet as dc
>>> dc.ApproxDP(3, "1e-6"), dc.User("patient_id")
(ApproxDP(epsilon=3, delta=1e-06), User(neighbours='add_remove', column='patient_id'))

The mechanisms are in `discreet.mechanisms`, composition and calibration in `discreet.accounting`, the samplers in
`discreet.noise`, the auditor in `discreet.adversary`.
"""

from typing import Any

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import (
    AnswerFailed,
    BudgetExceeded,
    DiscreetError,
    EntropyFailure,
    InvalidArgument,
    NotAccountable,
    Unsupported,
)
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP
from discreet.core.mechanism import Mechanism, Release
from discreet.core.units import Edge, Event, Node, Row, User

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "AnswerFailed",
    "ApproxDP",
    "Bounds",
    "BudgetExceeded",
    "Categories",
    "DiscreetError",
    "Edge",
    "EntropyFailure",
    "Event",
    "InvalidArgument",
    "Mechanism",
    "Node",
    "NotAccountable",
    "PureDP",
    "Release",
    "RenyiDP",
    "Row",
    "Unsupported",
    "User",
    "connect",
]


def __getattr__(name: str) -> Any:
    """`connect` brings SQL with it, which takes a while to load: not before it is asked for."""
    if name != "connect":
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    from discreet.connection import connect

    return connect
