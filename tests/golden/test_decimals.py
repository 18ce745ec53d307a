"""Questions that versions before exact decimals answered in doubles: what was paid for then stays free, and is read."""

import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import discreet as dc
from discreet.core.events import from_json
from discreet.session.session import Session
from discreet.session.sql import SQL

ANSWERED = json.loads((Path(__file__).parent / "decimals.json").read_text())
"""By the last version without decimals: texts, the digests of what they were charged under, payloads and rows."""
BOOKS: list[dict[str, Any]] = [
    {"unit": dc.User("who"), "budget": dc.PureDP(10000)},
    {"unit": dc.User("who"), "budget": dc.ApproxDP(1000, "1e-6")},
    {"unit": dc.Row(), "budget": dc.PureDP(10000)},
]
PLACES = range(300)


def opened(folder: Path, books: int) -> Session:
    columns = {
        "who": [*PLACES],
        "city": ["a", "b", "c"] * 100,
        "x": [float(place % 50) for place in PLACES],
        "n": [place % 20 for place in PLACES],
        "d": pa.array([Decimal(place % 500) / 100 for place in PLACES], pa.decimal128(10, 2)),
    }
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    bounds = {"x": (0, 50), "n": (0, 20), "d": (0, 5)}
    facts: dict[str, Any] = {"bounds": bounds, "values": {"city": ["a", "b", "c"]}, "ledger": folder / "books"}
    return dc.connect(folder / "t.parquet", **BOOKS[books], **facts)


def former_identities(session: Session, text: str) -> list[str]:
    bound = SQL(text, 1).bind(session._context)
    return [identity for identity, _ in bound.formers(bound.plan())]


@pytest.mark.parametrize("books", range(len(BOOKS)))
def test_answers_that_were_computed_in_doubles_are_free_and_readable(tmp_path: Path, books: int) -> None:
    answers = [answer for answer in ANSWERED if answer["books"] == books]
    assert len(answers) == 7
    with opened(tmp_path, books) as session:
        for answer in answers:
            tried = former_identities(session, answer["text"])
            [former] = [one for one in tried if hashlib.sha256(one.encode()).hexdigest() == answer["question"]]
            events = [from_json(event) for event in answer["events"]]
            session._ledger.ask(session.account, events, former, answer["payload"].encode)
        spent = session.spent
        for answer in answers:
            quote = session.price(answer["text"], epsilon=1)
            shown = session.sql(answer["text"], epsilon=1)
            assert (quote.stored, quote.loss) == (True, shown.loss)
            assert [[*row] for row in shown.rows] == answer["rows"]
            assert shown.certificate["canonical"] == answer["question"]
            session._ledger.confirm(shown.certificate, keys=[shown.certificate["key"]])
        assert session.spent == spent


def test_what_no_earlier_version_was_asked_is_planned_once_more_at_most(tmp_path: Path) -> None:
    """With decimals it is looked for as they were read, too; without, there is nothing else to look for."""
    with opened(tmp_path, 0) as session:
        for measure, looks in {"SUM(d)": 2, "SUM(n * 0.5)": 2, "SUM(n)": 1, "SUM(x / 2)": 1}.items():
            tried = former_identities(session, f"SELECT {measure} FROM t")
            assert len(set(tried)) == len(tried) == looks
