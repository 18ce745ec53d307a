"""A request for synthetic rows, with everything decided before the data is touched: from declared facts alone.

The columns and their values, the queries that the rows should answer well, the mechanism, what is run on the engine,
the events and so the price: all of it follows from what the steward declared and what was asked. `histogram` is the
one thing that looks at data: one statement, in which a unit's rows weigh at most `limit` rows in all cells together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from discreet.accounting.approximate import satisfies
from discreet.accounting.budgets import loss_of
from discreet.charging.epsilon_search import epsilon_within
from discreet.core.display.numbers import rational
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event, to_json
from discreet.core.exact import Exactable, at_least, natural
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.engines.engine import Engine
from discreet.noise.batches import Integers
from discreet.sql.aggregates import Sum
from discreet.sql.analysis.canonical import canonical
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.bounding.sums import Statistic
from discreet.sql.catalog import Catalog, nearest
from discreet.sql.measuring.planner import NOMINAL
from discreet.sql.parsing.row_source import STARTS, wanted
from discreet.sql.parsing.scope import Rows
from discreet.sql.parsing.select import parse_rows
from discreet.sql.plan import Aggregate, Measure
from discreet.sql.relations import copies_in, units_in
from discreet.sql.statement.builder import statement
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.layout import Weights
from discreet.sql.statement.results import Groups
from discreet.synopses.domain import Domain
from discreet.synopses.noisy_counts import gaussian_rho
from discreet.synopses.queries.blocks import Product
from discreet.synopses.queries.factors import every
from discreet.synopses.queries.workload import Workload
from discreet.synthesis.check import MOST_BLOCKS, Check
from discreet.synthesis.columns import Bins, Column, columns_of
from discreet.synthesis.methods import Chosen, choose
from discreet.synthesis.questions import block_of

__all__ = ["LIMIT", "Facts", "Request", "Wanted"]

FORMAT = 2
"""Of identities. What a number means never changes."""
LIMIT = 10
"""Rows of one unit that count in full where the steward declares no `max_rows`; units with more weigh as much."""
MOST_LIMIT = 1 << 20
FEW = 2_000
"""Marginals of three columns are among the queries where they have no more counts than this together."""
CHECKED = Fraction(1, 10)
"""The part of ε that finds out how far off the rows are."""
TAKEN = (Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2))
"""With δ the check has its part of ρ, which is less than the same part of ε: times this, the first that is enough."""
ROWS = Statistic(Sum.ROWS, None)
Wanted = int | str | Workload | Iterable[str | Sequence[str]] | None
"""What rows should be good for: marginals of so many columns, texts in SQL, lists of columns, or a workload."""


@dataclass(frozen=True)
class Facts:
    """What a session knows: the catalog, who is protected, the budget, and the SQL of the engine."""

    catalog: Catalog
    changes: int
    budget: PureDP | ApproxDP | ZCDP
    dialect: Dialect


@dataclass(frozen=True)
class Stored:
    """What was decided about rows that are stored already."""

    events: tuple[Event, ...]
    words: str
    noise: float | None
    check: PureDP | ZCDP | None
    """What the check cost."""


@dataclass(frozen=True)
class Request:
    """Rows of some columns, good for a workload, by a mechanism."""

    facts: Facts
    text: str
    rows: Rows
    columns: tuple[Column, ...]
    workload: Workload
    labels: tuple[str, ...]
    """What each block of the workload is about."""
    given: Fraction | None
    """The ε that it may cost; None where it is asked for ρ."""
    rho: Fraction | None
    """Instead of ε, under a budget in ρ, the ρ that it may cost: counts then have Gaussian noise."""
    limit: int | None
    """The most rows a unit weighs; None where each row is a unit."""
    share: Fraction
    """The part of the budget that the check has."""
    moved: int
    """How far one unit moves the histogram, in steps."""
    method: str | None = None
    """The name of the mechanism, if one was named."""
    stored: Stored | None = None
    """What was decided when rows were released that the books keep; None where they are still to be made."""

    @classmethod
    def of(
        cls,
        facts: Facts,
        what: str | Sequence[str],
        epsilon: Fraction | None,
        workload: Wanted = None,
        method: str | None = None,
        bins: Bins = None,
        max_rows: int | None = None,
        check: Exactable = CHECKED,
        rho: Fraction | None = None,
    ) -> Request:
        """Columns of the first table, a table's name, or a SELECT that lists columns."""
        text, strict = wanted(facts.catalog, what)
        rows = parse_rows(text, facts.catalog)
        columns = columns_of(rows, bins, strict=strict)
        domain = Domain(tuple(column.attribute for column in columns))
        table = rows.tables[0] if rows.tables else facts.catalog.tables[0].name
        queries, labels = _queries(workload, domain, table, columns)
        limit = _limit(rows, max_rows)
        # At row level a unit may be a row of each of several tables.
        moved = copies_in(rows.relation) if limit is None else Caps.fixed(limit).movement(1, 0)
        share = at_least("check", check, 0)
        if share > Fraction(1, 2):
            raise InvalidArgument(
                "check", check, "from 0 to 1/2", "it is the part of ε that finds out how good rows are"
            )
        return cls(facts, text, rows, columns, queries, labels, epsilon, rho, limit, share, moved, method)

    @cached_property
    def _planned(self) -> tuple[Fraction, Chosen, Check | None]:
        asked = (self.method, self.workload, self.facts)
        if self.rho is not None:
            return _within(*asked, self.rho, self.moved, self.share)
        assert self.given is not None
        return self.given, *_chosen(*asked, self.given, self.moved, self.share)

    @property
    def epsilon(self) -> Fraction:
        """What it may cost; for ρ, the ε at `NOMINAL` for which the rows are planned."""
        return self._planned[0] if self.given is None else self.given

    @property
    def chosen(self) -> Chosen:
        """The mechanism that makes the rows."""
        return self._planned[1]

    @cached_property
    def check(self) -> Check | None:
        """What finds out how far off the rows are."""
        if self.stored is None:
            return self._planned[2]
        budget = self.stored.check
        return None if budget is None else Check(self.workload, budget, self.moved, self.facts.changes)

    @property
    def domain(self) -> Domain:
        """All combinations of values."""
        return self.workload.domain

    @property
    def scale(self) -> int:
        """Steps of the histogram in a row."""
        return 1 if self.limit is None else G * H

    @property
    def whole(self) -> bool:
        """Whether all rows of units that keep to what is declared count in full."""
        return self.limit is None or self.limit == self.rows.max_rows

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What will be run, or was."""
        if self.stored is not None:
            return self.stored.events
        return (*self.chosen.terms.events, *(() if self.check is None else self.check.events))

    @cached_property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What that costs alone."""
        return loss_of(self.events, self.facts.budget)

    @cached_property
    def aggregate(self) -> Aggregate:
        """What the engine counts."""
        keys = tuple(column.key for column in self.columns)
        return Aggregate(self.rows.relation, keys, (Measure("n", "count"),), self.rows.max_rows)

    @cached_property
    def statement(self) -> str:
        """What the engine runs; what it cannot run is refused here."""
        return statement(self.aggregate, (ROWS,), self._weights, (), self.facts.dialect)

    @property
    def _weights(self) -> Weights | None:
        return None if self.limit is None else Weights("l1", Caps.fixed(self.limit), Caps.fixed(1))

    def identity(self, sources: Mapping[str, str]) -> str:
        """What the rows are stored under: what was asked and declared, never what was chosen for it. `sources` are
        where the tables are."""
        asked = {
            "format": FORMAT,
            "kind": "synthesis",
            "rows": canonical(self.aggregate),
            "domain": self.domain.to_json(),
            "workload": self._workload_digest,
            "method": self.method,
            **({"epsilon": str(self.given)} if self.rho is None else {"rho": str(self.rho)}),
            "check": str(self.share),
            "limit": self.limit,
            "changes": self.facts.changes,
            "copies": copies_in(self.rows.relation),
            "sources": dict(sources),
        }
        return json.dumps(asked, sort_keys=True)

    def former_identity(self, sources: Mapping[str, str]) -> str:
        """What books of earlier versions have the rows under; it names what was chosen."""
        identity = {
            "synthesis": canonical(self.aggregate),
            "domain": self.domain.to_json(),
            "workload": self._workload_digest,
            "method": self.chosen.name,
            "events": [to_json(event) for event in self.events],
            "limits": [self.limit, self.rows.max_rows],
            "sources": dict(sources),
        }
        return json.dumps(identity, sort_keys=True)

    @cached_property
    def _workload_digest(self) -> str:
        record, arrays = self.workload.packed()
        digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    @property
    def shown_text(self) -> str:
        """What is asked for, in words."""
        shown = "; ".join(self.labels[:20]) + ("; …" if len(self.labels) > 20 else "")
        return f"synthetic rows of {self.text}, good for {shown}"

    @property
    def record(self) -> dict[str, Any]:
        """What is stored beside the rows, so that they can be read whatever would be chosen later."""
        check = None if self.check is None else self.check.budget
        budget = None if check is None else [str(check.rho if isinstance(check, ZCDP) else check.epsilon)]
        kind = None if check is None else "zcdp" if isinstance(check, ZCDP) else "pure"
        return {"words": self.words, "noise": self.chosen.noise, "check": budget and [kind, *budget]}

    def recalled(self, record: Mapping[str, Any], events: tuple[Event, ...]) -> Request:
        """The request as it was when rows were stored with this record and charged for these events."""
        kind, number = record["check"] or (None, "0")
        check = None if kind is None else ZCDP(Fraction(number)) if kind == "zcdp" else PureDP(Fraction(number))
        return replace(self, stored=Stored(events, record["words"], record["noise"], check))

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far counts are off as they are measured, before rows are fitted to all of them."""
        noise = self.chosen.noise if self.stored is None else self.stored.noise
        return () if noise is None else (ExpectedError("a count as measured", noise / self.scale, noise / self.scale),)

    @property
    def words(self) -> str:
        """The plan in words."""
        if self.stored is not None:
            return self.stored.words
        many, blocks = len(self.workload), len(self.workload.blocks)
        names = " × ".join(f"{column.name} {column.attribute.size}" for column in self.columns)
        counts = f"{many:,} count{'s' * (many > 1)} in {blocks:,} block{'s' * (blocks > 1)}"
        said = [f"{self.chosen.name} on {self.domain.size:,} cells ({names}), for {counts}"]
        if self.limit is None:
            said.append("each row adds to one cell")
            if (copies := copies_in(self.rows.relation)) > 1:
                said.append(f"a row may be in all {copies} private tables, so noise is for as many rows")
        else:
            reason = (
                "as declared" if self.whole else "since max_rows is not declared" if self.rows.max_rows is None else ""
            )
            said.append(f"units weigh at most {self.limit:,} rows{', ' * bool(reason)}{reason}; more are weighed down")
        units = sorted(units_in(self.rows.relation))
        nobody = f"whose {' or '.join(units)} is NULL, or " if units else ""
        said.append(f"rows {nobody}with a value that is not listed or a number that is missing, are left out")
        if self.check is not None:
            part = rational(self.share, digits=3)
            said.append(f"{part} of the budget finds out how far off the rows are")
        return "; ".join(said)

    def histogram(self, engine: Engine) -> Integers:
        """Steps in each cell: one unit adds up to at most `limit` rows of `scale` steps."""
        groups = Groups.read(engine.run(self.statement), len(self.columns), (ROWS,), self.limit is not None)
        keys = [*groups.rows.keys]
        weight = H if self.limit is None else Caps.fixed(self.limit).weight(0)
        totals = groups.rows.clipped(0, weight, 0, keys)
        places = [{key: place for place, key in enumerate(column.keys)} for column in self.columns]
        cells: Integers = np.zeros(self.domain.dense(), dtype=np.int64)
        for key, total in zip(keys, totals, strict=True):
            codes = [place.get(part) for place, part in zip(places, key, strict=True)]
            known = [code for code in codes if code is not None]
            if len(known) == len(codes):
                cell = int(np.ravel_multi_index(known, self.domain.shape))
                cells[cell] += total // (G * H) if self.limit is None else total
        return cells


def _limit(rows: Rows, asked: int | None) -> int | None:
    if not rows.owned:
        if asked is not None:
            raise InvalidArgument("max_rows", asked, "for units of several rows", "leave it out: each row is a unit")
        return None
    known = LIMIT if rows.max_rows is None else rows.max_rows
    limit = known if asked is None else natural("max_rows", asked)
    if limit > MOST_LIMIT:
        raise InvalidArgument("max_rows", limit, f"at most {MOST_LIMIT:,}", "noise would be all there is")
    return limit if rows.max_rows is None else min(limit, rows.max_rows)


def _chosen(
    method: str | None, workload: Workload, facts: Facts, epsilon: Fraction, moved: int, share: Fraction
) -> tuple[Chosen, Check | None]:
    """The mechanism and the check, which together cost ε at most."""
    delta = facts.budget.delta if isinstance(facts.budget, ApproxDP) else Fraction(0)

    def built(part: Fraction) -> Chosen:
        return choose(method, workload, epsilon=part, delta=delta, unit_weight=moved, changes=facts.changes)

    if not share:
        return built(epsilon), None
    if delta:
        rho = gaussian_rho(epsilon, delta, MOST_BLOCKS).rho * share
        check = Check(workload, ZCDP(rho), moved, facts.changes)
        for taken in TAKEN:
            chosen = built(epsilon * (1 - taken * share))
            if satisfies(Composed((*chosen.terms.events, *check.events)), ApproxDP(epsilon, delta)):
                return chosen, check
    return built(epsilon * (1 - share)), Check(workload, PureDP(epsilon * share), moved, facts.changes)


def _within(
    method: str | None, workload: Workload, facts: Facts, rho: Fraction, moved: int, share: Fraction
) -> tuple[Fraction, Chosen, Check | None]:
    """The ε at `NOMINAL`, the mechanism and the check, which together cost ρ at most."""
    check = Check(workload, ZCDP(rho * share), moved, facts.changes) if share else None
    checked = () if check is None else check.events

    def built(epsilon: Fraction) -> Chosen:
        terms: dict[str, Any] = {"delta": NOMINAL, "unit_weight": moved, "changes": facts.changes}
        return choose(method, workload, epsilon=epsilon, **terms, gaussian=True)

    found = epsilon_within(rho, lambda trial: (*built(trial).terms.events, *checked))
    return found, built(found), check


def _queries(wanted: Wanted, domain: Domain, table: str, columns: Sequence[Column]) -> tuple[Workload, tuple[str, ...]]:
    """The workload, and what each of its blocks is about."""
    if isinstance(wanted, Workload):
        if wanted.domain != domain:
            raise InvalidArgument("workload", wanted, f"over {domain.names} as declared", "give texts in SQL instead")
        return wanted, tuple(_label(block, number) for number, block in enumerate(wanted.blocks))
    if wanted is None or isinstance(wanted, int):
        parts: list[Any] = [names for order in _orders(wanted, domain) for names in combinations(domain.names, order)]
    else:
        parts = [wanted] if isinstance(wanted, str) else [*wanted]
    if not parts:
        raise InvalidArgument("workload", wanted, "at least one query", "leave it out for marginals of all columns")
    blocks, labels = [], []
    for part in parts:
        if isinstance(part, str) and part.strip().upper().startswith(STARTS):
            blocks.append(block_of(part, table, columns))
            labels.append(" ".join(part.split()))
        else:
            held = _held(part, domain)
            blocks.append(Product(dict.fromkeys(held, every)))
            labels.append(" × ".join(held) or "all rows")
    return Workload(domain, tuple(blocks)), tuple(labels)


def _held(part: Any, domain: Domain) -> list[str]:
    """The columns that a part of a workload names."""
    if not isinstance(part, str | Iterable):
        raise InvalidArgument("workload", part, "SQL or columns", 'write ("age", "city"); a number of columns is alone')
    known = {name.lower(): name for name in domain.names}
    names = [part] if isinstance(part, str) else [*part]
    for name in names:
        if not isinstance(name, str) or name.lower() not in known:
            raise InvalidArgument("workload", name, "SQL, or columns of the rows", nearest(str(name), domain.names))
    return [known[name.lower()] for name in names]


def _orders(wanted: int | None, domain: Domain) -> range:
    many = len(domain.names)
    if wanted is not None:
        if natural("workload", wanted) > many:
            raise InvalidArgument("workload", wanted, f"at most {many}, the number of columns", "ask for fewer")
        return range(1, wanted + 1)
    if many < 3 or comb(many, 3) > FEW:
        return range(1, min(many, 2) + 1)
    triples = sum(a * b * c for a, b, c in combinations(domain.shape, 3))
    return range(1, 4 if triples <= FEW else 3)


def _label(block: Any, number: int) -> str:
    if isinstance(block, Product):
        return " × ".join(block.factors) or "all rows"
    return f"block {number + 1}"
