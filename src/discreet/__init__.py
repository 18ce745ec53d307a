"""Private answers from sensitive data: exact noise, derived guarantees, honest error bars.

>>> import discreet as dc
>>> dc.ApproxDP(3, "1e-6"), dc.User("patient_id")
(ApproxDP(epsilon=3, delta=1e-06), User(neighbours='add_remove', column='patient_id'))

The mechanisms are in `discreet.mechanisms`, composition and calibration in `discreet.accounting`, the samplers in
`discreet.noise`, the auditor in `discreet.adversary`: all are there after `import discreet`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import accounting, adversary, ledger, mechanisms, noise, robust, samples, synopses
    from discreet.charging.certificate import Certificate, verify
    from discreet.charging.question import Question
    from discreet.charging.quote import Quote
    from discreet.core.domains import Bounds, Categories
    from discreet.core.errors import (
        AnswerFailed,
        BudgetExceeded,
        DiscreetError,
        EngineUnavailable,
        EntropyFailure,
        InvalidArgument,
        NotAccountable,
        Unsupported,
    )
    from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP
    from discreet.core.mechanism import Mechanism, Release
    from discreet.core.units import Row, User
    from discreet.engines.duckdb.csv_records import Csv
    from discreet.estimation.question import Estimate
    from discreet.estimation.result import Estimation
    from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable, StreamEnded
    from discreet.session.connect import Private, connect
    from discreet.session.mechanism_run import MechanismRelease, RunMechanism
    from discreet.session.session import Session
    from discreet.session.sql import SQL
    from discreet.sql.answers.answer import Answer
    from discreet.synthesis.question import SyntheticRows
    from discreet.synthesis.result import Synthesis

__version__ = "0.1.0"

_HOMES = {
    "charging.certificate": ("Certificate", "verify"),
    "charging.question": ("Question",),
    "charging.quote": ("Quote",),
    "core.domains": ("Bounds", "Categories"),
    "core.errors": (
        "AnswerFailed",
        "BudgetExceeded",
        "DiscreetError",
        "EngineUnavailable",
        "EntropyFailure",
        "InvalidArgument",
        "NotAccountable",
        "Unsupported",
    ),
    "core.losses": ("ZCDP", "ApproxDP", "PureDP", "RenyiDP"),
    "core.mechanism": ("Mechanism", "Release"),
    "core.units": ("Row", "User"),
    "engines.duckdb.csv_records": ("Csv",),
    "estimation.question": ("Estimate",),
    "estimation.result": ("Estimation",),
    "ledger.errors": ("LedgerDamaged", "LedgerUnavailable", "StreamEnded"),
    "session.connect": ("Private", "connect"),
    "session.mechanism_run": ("MechanismRelease", "RunMechanism"),
    "session.session": ("Session",),
    "session.sql": ("SQL",),
    "sql.answers.answer": ("Answer",),
    "synthesis.question": ("SyntheticRows",),
    "synthesis.result": ("Synthesis",),
}
"""Where the names are from."""
_PACKAGES = ("accounting", "adversary", "ledger", "mechanisms", "noise", "robust", "samples", "synopses")

__all__ = [
    "SQL",
    "ZCDP",
    "Answer",
    "AnswerFailed",
    "ApproxDP",
    "Bounds",
    "BudgetExceeded",
    "Categories",
    "Certificate",
    "Csv",
    "DiscreetError",
    "EngineUnavailable",
    "EntropyFailure",
    "Estimate",
    "Estimation",
    "InvalidArgument",
    "LedgerDamaged",
    "LedgerUnavailable",
    "Mechanism",
    "MechanismRelease",
    "NotAccountable",
    "Private",
    "PureDP",
    "Question",
    "Quote",
    "Release",
    "RenyiDP",
    "Row",
    "RunMechanism",
    "Session",
    "StreamEnded",
    "Synthesis",
    "SyntheticRows",
    "Unsupported",
    "User",
    "accounting",
    "adversary",
    "connect",
    "ledger",
    "mechanisms",
    "noise",
    "robust",
    "samples",
    "synopses",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Names are loaded when they are asked for: numbers and SQL take a while, and not everybody needs them."""
    if name in _PACKAGES:
        return import_module(f"discreet.{name}")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"discreet.{home}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__all__", "__doc__", "__name__", "__version__"])
