"""The library's own adversary: it imports anything, and only the app imports it.

`audit` runs any mechanism and gives a lower bound on its ε at a stated confidence; `Comparison` compares two output
distributions exactly where they can be written down; `measured_sensitivity` measures how far a function moves between
neighbours. `reconstruct` reads secret bits off answers about groups, `reconstruct_tables` people off published tables;
`least_error` says how wrong private answers have to be.

>>> from discreet.core.losses import PureDP
>>> found = audit(lambda rows: f"{len(rows)} rows", [1, 2], [1, 2, 3], samples=2000)
>>> found.violates(PureDP(1)), found.event
(True, "output = '2 rows'")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.adversary.auditor import Audit, audit
from discreet.adversary.reachability import Comparison
from discreet.adversary.sensitivity import MeasuredSensitivity, measured_sensitivity

if TYPE_CHECKING:
    from discreet.adversary.answerers import Answers, FromConnection, FromFile, FromFunction, FromSession
    from discreet.adversary.census import TableReconstruction, reconstruct_tables
    from discreet.adversary.chance import epsilon_proven, most_by_chance
    from discreet.adversary.limits import LeastError, counter_error, least_error, queries_error
    from discreet.adversary.queries import Hadamard, Listed
    from discreet.adversary.reconstruction import Reconstruction, reconstruct
    from discreet.adversary.tables import Tables

__all__ = [
    "Answers",
    "Audit",
    "Comparison",
    "FromConnection",
    "FromFile",
    "FromFunction",
    "FromSession",
    "Hadamard",
    "LeastError",
    "Listed",
    "MeasuredSensitivity",
    "Reconstruction",
    "TableReconstruction",
    "Tables",
    "audit",
    "counter_error",
    "epsilon_proven",
    "least_error",
    "measured_sensitivity",
    "most_by_chance",
    "queries_error",
    "reconstruct",
    "reconstruct_tables",
]

_HOMES = {
    "answerers": ("Answers", "FromConnection", "FromFile", "FromFunction", "FromSession"),
    "census": ("TableReconstruction", "reconstruct_tables"),
    "chance": ("epsilon_proven", "most_by_chance"),
    "limits": ("LeastError", "counter_error", "least_error", "queries_error"),
    "queries": ("Hadamard", "Listed"),
    "reconstruction": ("Reconstruction", "reconstruct"),
    "tables": ("Tables",),
}
"""Where names are from that are loaded when they are asked for."""


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'discreet.adversary' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"discreet.adversary.{home}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
