"""The library's own adversary: it imports anything, and only the app imports it.

`audit` runs any mechanism and gives a lower bound on its ε at a stated confidence; `Comparison` compares two output
distributions exactly where they can be written down; `measured_sensitivity` measures how far a function moves between
neighbours; `audit_session` replays questions on made-up neighbours. `reconstruct` reads secret bits off answers about
groups, `reconstruct_tables` people off published tables;
`least_error` says how wrong private answers have to be. `how_anonymous`, `uniqueness`, `intersect` and `match` find
records of people in tables without names, `difference`, `track` and `unsuppress` values of people in aggregates,
`trace_means` and `trace_rows` those who are in the data.

>>> from discreet.core.losses import PureDP
>>> found = audit(lambda rows: f"{len(rows)} rows", [1, 2], [1, 2, 3], samples=2000)
>>> found.violates(PureDP(1)), found.event
(True, "output = '2 rows'")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.adversary.auditing.auditor import Audit, audit
from discreet.adversary.auditing.exact_comparison import Comparison
from discreet.adversary.auditing.sensitivity import MeasuredSensitivity, measured_sensitivity

if TYPE_CHECKING:
    from discreet.adversary.auditing.foreign import Program
    from discreet.adversary.auditing.neighbours import Numbers, worst_pair
    from discreet.adversary.differencing.answerers import OfConnection, OfSession, Restricted
    from discreet.adversary.differencing.attack import Differencing, difference, track
    from discreet.adversary.differencing.suppression import Suppression, margins, unsuppress
    from discreet.adversary.linkage.anonymity import Anonymity, Uniqueness, how_anonymous, uniqueness
    from discreet.adversary.linkage.intersection import Intersection, intersect
    from discreet.adversary.linkage.matching import Items, Matching, match
    from discreet.adversary.lower_bounds.least_error import (
        LeastError,
        counter_error,
        least_error,
        queries_error,
    )
    from discreet.adversary.membership.fingerprinting import FingerprintCode
    from discreet.adversary.membership.from_means import Tracing, power_of_means, trace_means
    from discreet.adversary.membership.from_rows import Marginals, trace_rows
    from discreet.adversary.membership.signed_rows import SignedData
    from discreet.adversary.reconstruction.answerers import (
        Answers,
        FromConnection,
        FromFile,
        FromFunction,
        FromSession,
    )
    from discreet.adversary.reconstruction.attack import Reconstruction, reconstruct
    from discreet.adversary.reconstruction.census import TableReconstruction, reconstruct_tables
    from discreet.adversary.reconstruction.chance import epsilon_proven, most_by_chance
    from discreet.adversary.reconstruction.published_tables import Tables
    from discreet.adversary.reconstruction.subset_queries import Hadamard, Listed
    from discreet.adversary.session_audit.audit import SessionAudit, audit_session

__all__ = [
    "Anonymity",
    "Answers",
    "Audit",
    "Comparison",
    "Differencing",
    "FingerprintCode",
    "FromConnection",
    "FromFile",
    "FromFunction",
    "FromSession",
    "Hadamard",
    "Intersection",
    "Items",
    "LeastError",
    "Listed",
    "Marginals",
    "Matching",
    "MeasuredSensitivity",
    "Numbers",
    "OfConnection",
    "OfSession",
    "Program",
    "Reconstruction",
    "Restricted",
    "SessionAudit",
    "SignedData",
    "Suppression",
    "TableReconstruction",
    "Tables",
    "Tracing",
    "Uniqueness",
    "audit",
    "audit_session",
    "counter_error",
    "difference",
    "epsilon_proven",
    "how_anonymous",
    "intersect",
    "least_error",
    "margins",
    "match",
    "measured_sensitivity",
    "most_by_chance",
    "power_of_means",
    "queries_error",
    "reconstruct",
    "reconstruct_tables",
    "trace_means",
    "trace_rows",
    "track",
    "uniqueness",
    "unsuppress",
    "worst_pair",
]

_HOMES = {
    "differencing.answerers": ("OfConnection", "OfSession", "Restricted"),
    "linkage.anonymity": ("Anonymity", "Uniqueness", "how_anonymous", "uniqueness"),
    "reconstruction.answerers": ("Answers", "FromConnection", "FromFile", "FromFunction", "FromSession"),
    "reconstruction.census": ("TableReconstruction", "reconstruct_tables"),
    "reconstruction.chance": ("epsilon_proven", "most_by_chance"),
    "differencing.attack": ("Differencing", "difference", "track"),
    "membership.fingerprinting": ("FingerprintCode",),
    "auditing.foreign": ("Program",),
    "linkage.intersection": ("Intersection", "intersect"),
    "lower_bounds.least_error": ("LeastError", "counter_error", "least_error", "queries_error"),
    "linkage.matching": ("Items", "Matching", "match"),
    "membership.from_rows": ("Marginals", "trace_rows"),
    "auditing.neighbours": ("Numbers", "worst_pair"),
    "reconstruction.subset_queries": ("Hadamard", "Listed"),
    "reconstruction.attack": ("Reconstruction", "reconstruct"),
    "session_audit.audit": ("SessionAudit", "audit_session"),
    "membership.signed_rows": ("SignedData",),
    "differencing.suppression": ("Suppression", "margins", "unsuppress"),
    "reconstruction.published_tables": ("Tables",),
    "membership.from_means": ("Tracing", "power_of_means", "trace_means"),
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
