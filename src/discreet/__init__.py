"""Private answers from sensitive data: exact noise, derived guarantees, honest error bars.

>>> import discreet as dc
>>> dc.ApproxDP(3, "1e-6"), dc.User("patient_id")
(ApproxDP(epsilon=3, delta=1e-06), User(neighbours='add_remove', column='patient_id'))

The mechanisms are in `discreet.mechanisms`, composition and calibration in `discreet.accounting`, the samplers in
`discreet.noise`, the auditor in `discreet.adversary`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.connection import Private, connect
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
    from discreet.engines.records import Csv

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "AnswerFailed",
    "ApproxDP",
    "Bounds",
    "BudgetExceeded",
    "Categories",
    "Csv",
    "DiscreetError",
    "Edge",
    "EntropyFailure",
    "Event",
    "InvalidArgument",
    "Mechanism",
    "Node",
    "NotAccountable",
    "Private",
    "PureDP",
    "Release",
    "RenyiDP",
    "Row",
    "Unsupported",
    "User",
    "connect",
]


_HOMES = {
    "connection": ("Private", "connect"),
    "core.domains": ("Bounds", "Categories"),
    "core.losses": ("ZCDP", "ApproxDP", "PureDP", "RenyiDP"),
    "core.mechanism": ("Mechanism", "Release"),
    "core.units": ("Edge", "Event", "Node", "Row", "User"),
    "engines.records": ("Csv",),
}
"""Where the names are from; all others are errors."""


def __getattr__(name: str) -> Any:
    """Names are loaded when they are asked for: numbers and SQL take a while, and not everybody needs them."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "core.errors")
    globals()[name] = getattr(import_module(f"discreet.{home}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
