"""Hostile text through every output: pages, notebooks, terminals, CSV, JSON, drawings, errors and reprs."""

import csv
import io
import json
import math
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.app.commands import Commands
from tests.attacks import trust_faults
from tests.attacks.register import attack

import discreet as dc
from discreet.adversary.auditing.auditor import audit
from discreet.adversary.auditing.report import page as audit_page
from discreet.charging.certificate import verify
from discreet.core.display.columns import Cells
from discreet.core.display.html import table
from discreet.core.display.text import csv_cell, json_text, visible
from discreet.core.mechanism import Release
from discreet.estimation.result import Estimation
from discreet.session.session import Session

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</text></svg><script>alert(2)</script>",
    "\x1b[2J\x1b]0;all clear\x07",
    "\x9b31m red",
    "[bold red]markup[/]",
    "gnp.\u202eexe\u2066",
    "one\ntwo\rthree\tfour",
    "\u2028line",
    "=HYPERLINK(1)",
    "+1 or so",
    "-none",
    "@SUM(1)",
    "  =1+1",
    "&amp;lt;",
]
TAGS = {"html", "meta", "title", "style", "div", "h1", "h2", "table", "thead", "tbody", "tr", "th", "td", "p", "span"}
TAGS |= {"details", "summary", "pre", "br", "strong", "svg", "text", "rect", "path", "circle"}
NAME = "\x1b[31m<b>\u202e=k"


class Reader(HTMLParser):
    """Fails where there is anything that we did not write."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in TAGS, tag
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs), attrs

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def error(self, message: str) -> None:
        raise AssertionError(message)


def assert_harmless(shown: str) -> None:
    """Nothing in it is obeyed by a terminal, and no letter is turned."""
    obeyed = {letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert obeyed <= {"\n"}


def assert_page(shown: str, *texts: str) -> None:
    """A page of ours: only our tags, and each of the texts in it as a text."""
    assert_harmless(shown)
    reader = Reader()
    reader.feed(shown)
    said = "".join(reader.said)
    for text in texts:
        assert any(shown[:12] in said for shown in (visible(text), visible(text, lines=True))), text


def asked(session: Session) -> Any:
    return session.sql(f'SELECT k AS "{NAME}", COUNT(*) AS "<i>n" FROM t GROUP BY k', epsilon=5)


def opened() -> Session:
    rows = {"who": np.arange(10 * len(HOSTILE)), "k": np.array(HOSTILE * 10), "<u>x\x1b": np.arange(10 * len(HOSTILE))}
    facts: dict[str, Any] = {"values": {"k": HOSTILE}, "bounds": {"<u>x\x1b": (0, 9)}, "dataset": "t<b>", "max_rows": 1}
    return dc.connect(rows, unit=dc.User("who"), budget=dc.ApproxDP(50, "1e-6"), table="t", **facts)


def estimate() -> Estimation:
    loss, names = dc.PureDP(1), tuple(HOSTILE)
    release = Release(HOSTILE[0], loss, (), None, True)
    return Estimation(HOSTILE[3], names[:1], loss, "; ".join(HOSTILE), release, {}, True)


@attack(40, finds=[trust_faults.nothing_escaped, trust_faults.one_renderer_of_its_own, trust_faults.characters_obeyed])
def test_pages_hold_texts_and_nothing_that_texts_bring() -> None:
    with opened() as session:
        answer = asked(session)
        assert_page(answer._repr_html_(), *HOSTILE, NAME)
        assert_page(session._repr_html_() or "", "<u>x\x1b", HOSTILE[0])
        assert_page(session.price(f'SELECT COUNT(*) AS "{NAME}" FROM t', epsilon=1)._repr_html_(), NAME)
        rows = session.synthesize(["k"], epsilon=5)
        assert_page(rows._repr_html_(), "k")
        assert_page(rows.report(), *(text[:10] for text in HOSTILE))
    assert_page(estimate()._repr_html_(), *HOSTILE)
    assert_page(Release(HOSTILE, dc.PureDP(1), ())._repr_html_(), *HOSTILE)
    found = audit(lambda rows: HOSTILE[0] + HOSTILE[3] * len(rows), [1], [1, 2], samples=200, claim=dc.PureDP(1))
    assert_page(found._repr_html_())
    assert_page(audit_page(found, HOSTILE[0], HOSTILE), *HOSTILE)
    assert_page(table([Cells(text, [text]) for text in HOSTILE]), *HOSTILE)


def printed() -> Iterator[str]:
    """What Python prints of everything that holds texts of others."""
    with opened() as session:
        answer = asked(session)
        yield str(answer)
        yield repr(answer)
        yield repr(session)
        yield str(session.price(f'SELECT COUNT(*) AS "{NAME}" FROM t', epsilon=1))
        yield str(verify(answer.certificate))
        yield "\n".join(visible(note) for note in answer.notes)
        made = session.synthesize(["k"], epsilon=5)
        yield str(made)
        yield repr(made.table)
        for text in (
            'SELECT "\x1b[2J\u202e" FROM t',
            f'SELECT k AS "{NAME}" FROM t',
            "SELECT \x1b[2J",
            "SELECT COUNT(*",
        ):
            with pytest.raises(dc.DiscreetError) as refusal:
                session.sql(text, epsilon=1)
            yield str(refusal.value)
        for wrong in HOSTILE:
            with pytest.raises(dc.DiscreetError) as refusal:
                session.synthesize([wrong], epsilon=1)
            yield str(refusal.value)
    yield str(estimate())
    yield str(dc.Unsupported(HOSTILE[3], HOSTILE[4], HOSTILE[6]))


@attack(40, finds=[trust_faults.characters_obeyed, trust_faults.characters_of_terminals_alone])
def test_what_python_prints_is_obeyed_by_no_terminal() -> None:
    for shown in printed():
        assert_harmless(shown)


def commands(folder: Path) -> Commands:
    """A folder whose data and settings hold hostile names and keys."""
    names = {"who": np.arange(10 * len(HOSTILE)), "k": HOSTILE * 10}
    pyarrow.parquet.write_table(pyarrow.table(names), folder / "t.parquet")
    listed = json.dumps(HOSTILE)
    (folder / "discreet.toml").write_text(
        '[budget]\nepsilon = 50\ndelta = 1e-6\n[tables.t]\nsource = "t.parquet"\nunit = "who"\nmax_rows = 1\n'
        f"values = {{ k = {listed} }}\n"
    )
    return Commands(folder)


@attack(
    40,
    finds=[trust_faults.nothing_escaped, trust_faults.characters_obeyed, trust_faults.formulas_run],
)
def test_commands_print_texts_and_sheets_compute_nothing(tmp_path: Path) -> None:
    run = commands(tmp_path)
    question = f'SELECT k AS "{NAME}", COUNT(*) AS "=n" FROM t GROUP BY k'
    pages = ("--html", "answer.html", "--certificate", "answer.json")
    assert_harmless(run("query", question, "-e", "5", *pages).output)
    assert_page((tmp_path / "answer.html").read_text(), *HOSTILE, NAME)
    for words in (("price", question, "-e", "5"), ("budget",), ("ledger",), ("registry",)):
        assert_harmless(run(*words).output)
        record = run(*words, "--json").output
        assert_harmless(record)
        json.loads(record)
    assert_harmless(run("verify", "answer.json", code=4).output)
    assert_harmless(run("query", 'SELECT "\x1b[2J\u202e" FROM t', "-e", "1", code=2).output)
    found = json.loads(run("query", question, "-e", "5", "--json").output)
    assert [row[0] for row in found["rows"]] == HOSTILE
    lines = [*csv.reader(io.StringIO(run("query", question, "-e", "5", "--csv").stdout))]
    run("synth", "t", "--columns", "k", "-e", "5", "--out", "rows.csv")
    lines += [*csv.reader((tmp_path / "rows.csv").open(newline=""))]
    assert lines[0][1] == "'=n"
    for line in lines:
        first = line[0].lstrip()
        assert not first.startswith(("=", "+", "-", "@")), line
    assert {visible(line[0].removeprefix("'")) for line in lines[1 : len(HOSTILE) + 1]} == set(map(visible, HOSTILE))


@attack(40, finds=[trust_faults.numbers_in_words, trust_faults.formulas_run])
def test_numbers_stay_numbers() -> None:
    for value in (-5, -0.5, "-5", "+4", "-1.5e-7", "1,5", "plain", "", None, True):
        assert csv_cell(value) == value
    assert csv_cell("-5-3") == "'-5-3"
    for number in (math.nan, math.inf, -math.inf, np.float64("nan")):
        assert json.loads(json_text({"x": [number]})) == {"x": [None]}
    assert json.loads(json_text({"\u2028\x9b": "\u202e"})) == {"\u2028\x9b": "\u202e"}
    assert Fraction(json.loads(json_text([0.1]))[0]) == Fraction(0.1)
