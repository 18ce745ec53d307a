"""People read off published tables of counts: which records every list of people that fits the tables must have.

>>> sex = {"block": [7, 7], "sex": ["F", "M"], "count": [1, 2]}
>>> age = {"block": [7, 7], "age": ["young", "old"], "count": [3, 0]}
>>> found = reconstruct_tables({"sex": sex, "age": age})
>>> found.people, found.certain, found.verdict
(3, 3, 'BROKEN: 3 of 3 people (100.0 %) follow from the tables with certainty, in 1 of 1 blocks everybody.')

Certain means certain: the record is in every solution of the equations in whole numbers, so whoever trusts the tables
can name its attributes without looking at anything else. A table that has all attributes prints its people, which no
attack can be credited with: a release is judged by those who follow from several tables together (`beyond`), and broken
by those of them who share their values with few others. Tables that no people fit are told apart from those that many
fit: where exact tables contradict each other, which ones and by how much; noisy ones fit nothing, and the nearest list
of people should match no better than another block's does (`Agreement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.figures import altair, styled
from discreet.adversary.findings import judged
from discreet.adversary.reconstruction.census_block import SECONDS, Solved, solve
from discreet.adversary.reconstruction.published_tables import Groups, Tables, columns_of
from discreet.core.display.columns import Cells
from discreet.core.display.html import block as html_block
from discreet.core.display.html import note, table
from discreet.core.errors import InvalidArgument
from discreet.core.exact import positive

__all__ = ["Agreement", "Block", "TableReconstruction", "reconstruct_tables"]

STATES = {
    "unique": "everybody follows from the tables",
    "ambiguous": "some people follow, others are open",
    "inconsistent": "no list of people fits the tables",
    "unsolved": "the search took too long",
}
LUCK = 0.001
FEW = 5
"""People of the same values that are too few to hide each other."""
MOST_TOLD = 5
"""Blocks whose disagreements are told one by one."""


@dataclass(frozen=True)
class Block:
    """What came of one block."""

    name: Hashable
    solved: Solved = field(repr=False)
    cells: NDArray[np.int64] = field(repr=False)
    disagreements: tuple[str, ...] = ()

    @property
    def people(self) -> int:
        """People of the solution, or of the nearest list."""
        return int(self.solved.found.sum())

    @property
    def certain(self) -> int:
        """People that every solution has."""
        return int(self.solved.least.sum())


@dataclass(frozen=True)
class Shares:
    """Of people who are certain, how many are in which situation."""

    beyond: int
    """Whom no table prints: they follow from several together."""
    few: int
    """Those of them who are fewer than five of the same values."""
    alone: int
    """Of all who are certain, those of whom there is nobody else with the same values."""


@dataclass(frozen=True)
class Agreement:
    """People found beside true ones of the same block, and of a block of about the same size."""

    right: float
    """The part that is right: matches, over the people of the larger list."""
    elsewhere: float
    """The same, compared with another block."""
    better: int
    """Blocks that match themselves better than the other one."""
    worse: int
    certain_right: float | None
    """The part of certain people that are there."""

    @property
    def chance(self) -> float:
        """How likely so many blocks match themselves better if the tables say nothing: a sign test."""
        from scipy.stats import binom

        decided = self.better + self.worse
        return float(binom.sf(self.better - 1, decided, 0.5)) if decided else 1.0


@dataclass(frozen=True)
class TableReconstruction:
    """What published tables give away."""

    tables: Tables = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)
    agreement: Agreement | None = None

    @property
    def people(self) -> int:
        """People of blocks whose tables fit."""
        return sum(block.people for block in self.blocks if block.solved.status != "inconsistent")

    @property
    def certain(self) -> int:
        """People who follow from the tables."""
        return sum(block.certain for block in self.blocks)

    @cached_property
    def shares(self) -> Shares:
        """Who of the certain people follows only from several tables, and who is alone."""
        printing = {held.name for held in self.tables.tables if np.bincount(held.row_of).max() == 1}
        beyond = few = alone = 0
        for block in self.blocks:
            least, most = block.solved.least, np.full(block.cells.size, np.inf)
            printed = np.zeros(block.cells.size, bool)
            for held in self.tables.tables:
                if block.name in held.counts:
                    counts = held.counts[block.name][held.row_of[block.cells]]
                    most = np.fmin(most, counts)
                    if held.name in printing:
                        printed |= np.isfinite(counts)
            if block.solved.status == "unique":
                most = least.astype(np.float64)
            beyond += int(least[~printed].sum())
            few += int(least[~printed & (most < FEW)].sum())
            alone += int(least[most == 1].sum())
        return Shares(beyond, few, alone)

    @cached_property
    def states(self) -> dict[str, int]:
        """How many blocks are in which state."""
        return {state: many for state in STATES if (many := sum(b.solved.status == state for b in self.blocks))}

    @cached_property
    def verdict(self) -> str:
        """In plain words."""
        blocks, unfit = len(self.blocks), self.states.get("inconsistent", 0)
        if unfit == blocks:
            told = "HELD: no list of people fits the tables of any block, so nobody follows from them"
            if self.agreement is None:
                return f"{told}."
            if self.agreement.chance > LUCK:
                return f"{told}; the nearest lists match no better than another block's people."
            match = f"{self.agreement.right * 100:.1f} % against {self.agreement.elsewhere * 100:.1f} %"
            return f"LEAKING: nobody follows for certain, but the nearest lists match more than by luck ({match})."
        noted = f"; the tables of {unfit:,} contradict each other" if unfit else ""
        shares = self.shares
        if not shares.beyond:
            one = "nobody follows from the tables together who is not printed in one of them"
            if not shares.alone:
                return f"HELD: {one}, and nobody printed there is alone with their values{noted}."
            are = "person printed there is" if shares.alone == 1 else "people printed there are"
            return f"LEAKING: {one}, but {shares.alone:,} {are} alone with their values{noted}."
        part = f"{shares.beyond:,} of {self.people:,} people ({shares.beyond / max(1, self.people) * 100:.1f} %)"
        follow = "follows" if shares.beyond == 1 else "follow"
        whole = f"in {self.states.get('unique', 0):,} of {blocks:,} blocks everybody"
        kind = judged(shares.few, self.people) if shares.few else "LEAKING"
        return f"{kind}: {part} {follow} from the tables with certainty, {whole}{noted}."

    def disagreements(self) -> dict[Hashable, tuple[str, ...]]:
        """What does not fit, by block."""
        return {block.name: block.disagreements for block in self.blocks if block.disagreements}

    def records(self, *, certain_only: bool = True) -> dict[str, list[Any]]:
        """The people found, one a row: their block, their attributes, and whether they are certain."""
        out: dict[str, list[Any]] = {name: [] for name in ("block", *self.tables.attributes, "certain")}
        for block in self.blocks:
            for place in np.flatnonzero(block.solved.found).tolist():
                sure, values = int(block.solved.least[place]), self.tables.decode(int(block.cells[place]))
                for number in range(int(block.solved.found[place])):
                    if certain_only and number >= sure:
                        break
                    row = (block.name, *values, number < sure)
                    for column, value in zip(out.values(), row, strict=True):
                        column.append(value)
        return out

    def columns(self) -> list[Cells]:
        """Blocks by state, to show."""
        rows = []
        for state in self.states:
            of = [block for block in self.blocks if block.solved.status == state]
            rows.append((state, len(of), sum(b.people for b in of), sum(b.certain for b in of), STATES[state]))
        return [
            Cells("blocks", [f"{row[1]:,}" for row in rows], True, True),
            Cells("people", [f"{row[2]:,}" for row in rows], True, True),
            Cells("certain", [f"{row[3]:,}" for row in rows], True, True),
            Cells("state", [row[0] for row in rows], firm=True),
            Cells("which means", [row[4] for row in rows], quiet=True),
        ]

    def notes(self) -> list[str]:
        """What does not fit, and how the people found compare with true ones."""
        told = []
        if self.certain:
            shares, printed = self.shares, self.certain - self.shares.beyond
            told.append(
                f"{self.certain:,} certain: {printed:,} printed in one table, {shares.beyond:,} only from several"
                f" together ({shares.few:,} of fewer than {FEW} with the same values);"
                f" {shares.alone:,} alone with their values"
            )
        wrong = list(self.disagreements().items())
        told += [f"block {name}: {'; '.join(said)}" for name, said in wrong[:MOST_TOLD]]
        more = len(wrong) - MOST_TOLD
        told += [f"… and {more:,} more blocks whose tables do not fit"] if more > 0 else []
        if self.agreement is not None:
            agreed = self.agreement
            told.append(
                f"compared with true people {agreed.right * 100:.1f} % match; with those of another block"
                f" {agreed.elsewhere * 100:.1f} %; by luck with probability {agreed.chance:.2g}"
            )
        return told

    def as_record(self, *, reveal: bool = False) -> dict[str, Any]:
        """For JSON; the people found only if asked for."""
        record: dict[str, Any] = {
            "verdict": self.verdict,
            "blocks": self.states,
            "people": self.people,
            "certain": self.certain,
            **vars(self.shares),
            "disagreements": {str(name): list(said) for name, said in self.disagreements().items()},
        }
        if self.agreement is not None:
            record["agreement"] = {**vars(self.agreement), "chance": self.agreement.chance}
        return record | ({"records": self.records()} if reveal else {})

    def __str__(self) -> str:
        states = ", ".join(f"{many:,} {state}" for state, many in self.states.items())
        return "\n".join([self.verdict, f"blocks: {states}", *self.notes()])

    def _repr_html_(self) -> str:
        alarm = self.verdict.startswith(("BROKEN", "LEAKING"))
        return html_block(note(self.verdict, alarm=alarm), table(self.columns()), *map(note, self.notes()))

    def plot(self) -> Any:
        """For blocks of each size the part of their people who follow from the tables."""
        alt = altair()
        sizes = Counter[tuple[int, str]]()
        for block in self.blocks:
            if block.people and block.solved.status != "inconsistent":
                sizes[block.people, "certain"] += block.certain
                sizes[block.people, "open"] += block.people - block.certain
        rows = [{"size": size, "kind": kind, "people": many} for (size, kind), many in sorted(sizes.items())]
        drawn = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar()
            .encode(
                x=alt.X("size:O", title="people in the block"),
                y=alt.Y("people:Q", title="people"),
                color=alt.Color("kind:N", title=None, scale=alt.Scale(range=["#d55e00", "#b4c4d0"])),
            )
        )
        return styled(drawn.properties(width=520, height=260), self.verdict)


def reconstruct_tables(
    tables: Mapping[str, Any] | Tables,
    *,
    block: str = "block",
    count: str = "count",
    values: Mapping[str, Sequence[Hashable]] | None = None,
    groups: Groups | None = None,
    truth: Any = None,
    seconds: float = SECONDS,
    progress: Callable[[float], None] | None = None,
) -> TableReconstruction:
    """Solve every block; with `truth`, people by block and attributes, say how many of those found are there.

    For tables see `Tables.read`; `seconds` is the most that one block may take.
    """
    positive("seconds", seconds)
    if not isinstance(tables, Tables):
        tables = Tables.read(tables, block=block, count=count, values=values, groups=groups)
    elif values is not None or groups is not None:
        raise InvalidArgument("values, groups", (values, groups), "left out", "Tables.read was given them already")
    solved = []
    for number, name in enumerate(tables.blocks):
        said = tables.equations(name)
        found = solve(said.rows, said.counts, said.cells.size, seconds)
        wrong = []
        if found.status == "inconsistent":
            wrong = said.impossible[:1] + tables.disagreements(name)
            nearest = f"the nearest are off by {found.misfit:.3g} in all" if found.misfit > 1e-6 else "only halves do"
            wrong = wrong or [f"no whole numbers fit all counts; {nearest}"]
        solved.append(Block(name, found, said.cells, tuple(wrong)))
        if progress is not None:
            progress((number + 1) / len(tables.blocks))
    blocks = tuple(solved)
    return TableReconstruction(tables, blocks, None if truth is None else _compared(tables, blocks, truth, block))


def _compared(tables: Tables, blocks: Sequence[Block], truth: Any, column: str) -> Agreement:
    columns = columns_of("truth", truth)
    cells = tables.encode(columns)
    where = columns.get(column) or ["all"] * cells.size
    true: dict[Hashable, Counter[int]] = {block.name: Counter() for block in blocks}
    for name, cell in zip(where, cells.tolist(), strict=True):
        if name in true:
            true[name][cell] += 1
    # Neighbours in size are each other's control.
    order = sorted(blocks, key=lambda block: sum(true[block.name].values()))
    pairs = list(zip(order[::2], order[1::2], strict=False))
    partner = {a.name: b.name for pair in pairs for a, b in (pair, pair[::-1])}
    own = [_overlap(block, true[block.name]) for block in blocks]
    other = [_overlap(block, true[partner.get(block.name, block.name)]) for block in blocks]
    sizes = [max(block.people, sum(true[block.name].values())) for block in blocks]
    total = max(1, sum(sizes))
    sure = sum(block.certain for block in blocks)
    kept = sum(_overlap(block, true[block.name], certain=True) for block in blocks)
    return Agreement(
        right=sum(own) / total,
        elsewhere=sum(other) / total,
        better=sum(a > b for a, b in zip(own, other, strict=True)),
        worse=sum(a < b for a, b in zip(own, other, strict=True)),
        certain_right=kept / sure if sure else None,
    )


def _overlap(block: Block, true: Counter[int], *, certain: bool = False) -> int:
    counts = block.solved.least if certain else block.solved.found
    return sum(min(int(counts[place]), true[int(block.cells[place])]) for place in np.flatnonzero(counts).tolist())
