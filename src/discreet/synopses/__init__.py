"""Synopses: what answers many linear queries at once, built privately from a histogram.

A `Domain` of named attributes has cells; a `Workload` is a list of queries over them; a mechanism releases a `Synopsis`
from the histogram of the cells, and everybody may ask it.

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", range(0, 101, 10), whole=True)))
>>> Workload.all_marginals(domain, 2) + Workload.ranges(domain, "age")
Workload(75 queries of 20 cells)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synopses.base import Terms
    from discreet.synopses.boosting import Boosting
    from discreet.synopses.domain import Attribute, Domain
    from discreet.synopses.enumeration import ArbitraryGenerator, Statistics
    from discreet.synopses.generators import BaseGenerator, LinearBase, LinearGenerator, sample_needed
    from discreet.synopses.median import MedianMechanism
    from discreet.synopses.mwem import MWEM
    from discreet.synopses.online_mw import OnlineMultiplicativeWeights
    from discreet.synopses.projection import Projection
    from discreet.synopses.queries.blocks import Explicit, Product
    from discreet.synopses.queries.factors import Sets, every, prefixes, ranges
    from discreet.synopses.queries.workload import Workload
    from discreet.synopses.small_database import SmallDatabase
    from discreet.synopses.synopsis import Answers, MedianOf, Synopsis, SyntheticTable, Weights, load
    from discreet.synopses.walk import SmallDatabaseWalk

__all__ = [
    "MWEM",
    "Answers",
    "ArbitraryGenerator",
    "Attribute",
    "BaseGenerator",
    "Boosting",
    "Domain",
    "Explicit",
    "LinearBase",
    "LinearGenerator",
    "MedianMechanism",
    "MedianOf",
    "OnlineMultiplicativeWeights",
    "Product",
    "Projection",
    "Sets",
    "SmallDatabase",
    "SmallDatabaseWalk",
    "Statistics",
    "Synopsis",
    "SyntheticTable",
    "Terms",
    "Weights",
    "Workload",
    "every",
    "load",
    "prefixes",
    "ranges",
    "sample_needed",
]

_HOMES = {
    "queries.blocks": ("Explicit", "Product"),
    "boosting": ("Boosting",),
    "domain": ("Attribute", "Domain"),
    "enumeration": ("ArbitraryGenerator", "Statistics"),
    "queries.factors": ("Sets", "every", "prefixes", "ranges"),
    "generators": ("BaseGenerator", "LinearBase", "LinearGenerator", "sample_needed"),
    "median": ("MedianMechanism",),
    "mwem": ("MWEM",),
    "online_mw": ("OnlineMultiplicativeWeights",),
    "projection": ("Projection",),
    "small_database": ("SmallDatabase",),
    "synopsis": ("Answers", "MedianOf", "Synopsis", "SyntheticTable", "Weights", "load"),
    "base": ("Terms",),
    "walk": ("SmallDatabaseWalk",),
    "queries.workload": ("Workload",),
}
"""Where the names are from."""


def __getattr__(name: str) -> Any:
    """Names are loaded when they are asked for."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'discreet.synopses' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"discreet.synopses.{home}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
