"""What people see of answers, quotes, sessions and releases: honest numbers, and texts that stay texts."""

import html
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.charging.certificate import verify
from discreet.core.display.columns import Cells, measured
from discreet.core.display.html import table
from discreet.mechanisms import Laplace
from discreet.noise import Entropy
from discreet.session.session import Session

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'&<b>", "plain"]
TAGS = {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "p", "strong", "br", "span"}
TAGS |= {"details", "summary", "pre"}


class Page(HTMLParser):
    """The tags, attributes and texts that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    rows = {
        "who": np.arange(4000) % 1000,
        "kind": np.array(HOSTILE * 1000),
        "<i>cost</i>": np.tile([1.0, 2.0, 3.0, 4.0], 1000),
    }
    opened = dc.connect(
        rows,
        unit=dc.User("who"),
        budget=dc.ApproxDP(50, "1e-6"),
        table="visits",
        bounds={"<i>cost</i>": (0, 5)},
        values={"kind": HOSTILE},
    )
    yield opened
    opened.close()


def pages(session: Session) -> Iterator[str]:
    question = 'SELECT kind AS "<u>kind", COUNT(*) AS "<script>n", AVG("<i>cost</i>") AS m FROM visits GROUP BY kind'
    yield session.sql(question, epsilon=1)._repr_html_()
    yield session.sql(question, epsilon=1, test_entropy=Entropy.for_tests(0))._repr_html_()
    yield session.price(question, epsilon=1)._repr_html_()
    yield session.price(question, epsilon=100)._repr_html_()
    yield session._repr_html_()
    yield Laplace.for_epsilon(1).release(5)._repr_html_()
    yield dc.Release(HOSTILE, dc.PureDP(1), ())._repr_html_()


def test_no_text_becomes_markup_and_nothing_is_fetched(session: Session) -> None:
    for text in pages(session):
        page = Page(text)
        assert page.open == []
        assert set(page.tags) <= TAGS
        assert page.attributes <= {"class", "style"}
        assert "http" not in re.sub(r"<pre>.*</pre>", "", text, flags=re.DOTALL)
        assert "url(" not in text


def test_hostile_values_are_shown_as_they_are(session: Session) -> None:
    texts = Page(next(pages(session))).texts
    assert set(HOSTILE) <= set(texts)
    assert {"<u>kind", "<script>n"} <= set(texts)
    assert "<i>cost</i>" in Page(session._repr_html_()).texts


def test_colours_are_the_pages_own(session: Session) -> None:
    """No fixed ink on a fixed ground: both would have to be, and neither is."""
    for text in pages(session):
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        assert style is not None
        grounds = set(re.findall(r"background: ([^;]+);", style[1]))
        assert grounds <= {"none", "#8884", "#2f7fc1"}


@given(
    st.lists(st.tuples(st.floats(-1e7, 1e7), st.floats(1e-4, 1e4), st.floats(0.5, 2)), min_size=1, max_size=6),
    st.booleans(),
)
def test_shown_intervals_hold_the_real_ones(cells: list[tuple[float, float, float]], even: bool) -> None:
    values = [value for value, _, _ in cells]
    spans = [(value - width, value + width * (1 if even else skew)) for value, width, skew in cells]
    value, interval = measured("n", values, spans, "95 %")
    for middle, said, (low, high) in zip(value.texts, interval.texts, spans, strict=True):
        at, numbers = read(middle), [read(part) for part in said.split("…")]
        ends = (at - numbers[0], at + numbers[0]) if interval.title.startswith("±") else numbers
        slack = 1e-9 * max(abs(low), abs(high), 1)
        assert ends[0] <= low + slack
        assert high - slack <= ends[1]


def read(text: str) -> float:
    return float(text.strip().replace(",", "").replace("−", "-").replace("∞", "inf"))


def test_numbers_stand_to_the_right_with_their_thousands_apart() -> None:
    shown = table([Cells("city", ["Ely"]), *measured("n", [1234567.4], [(1234500.0, 1234634.8)], "95 %")])
    assert '<td class="right">1,234,567</td><td class="right quiet">68</td>' in shown
    assert "<td>Ely</td>" in shown
    assert math.isinf(read(measured("n", [1.0], [(-math.inf, math.inf)], "95 %")[1].texts[0].split("…")[1]))


def test_an_answer_shows_its_price_notes_and_a_certificate_that_holds(session: Session) -> None:
    answer = session.sql("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", epsilon=1)
    shown = answer._repr_html_()
    assert re.search(r"\(ε = [\d.]+(, δ = 1e-6)?\), who-level", shown)
    assert all(html.escape(note) in shown for note in answer.notes)
    folded = re.search(r"<details><summary>Certificate.*<pre>(.*)</pre></details>", shown, re.DOTALL)
    assert folded is not None
    assert verify(json.loads(html.unescape(folded[1]))).loss == answer.loss


def test_what_is_not_private_stands_out(session: Session) -> None:
    seeded = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1, test_entropy=Entropy.for_tests(0))
    released = Laplace.for_epsilon(1).release(5, entropy=Entropy.for_tests(0))
    for shown in (seeded._repr_html_(), released._repr_html_()):
        assert '<p class="alarm">NOT PRIVATE' in shown
    assert '<p class="alarm">' not in session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)._repr_html_()


def test_a_quote_says_whether_it_fits(session: Session) -> None:
    question = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    fits, not_at_all = session.price(question, epsilon="0.9"), session.price(question, epsilon=1000)
    assert "within what is left" in fits._repr_html_()
    assert "it would be refused" in not_at_all._repr_html_()
    for error in fits.errors:
        assert str(error) in Page(fits._repr_html_()).texts


def test_a_session_shows_who_is_protected_what_is_left_and_what_is_declared(session: Session) -> None:
    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    texts = Page(session._repr_html_()).texts
    assert "each user (column who), whether there or not" in texts
    assert "0 to 5" in texts
    used = next(float(text.split()[0]) for text in texts if text.endswith("% used"))
    assert 0 < used < 100


def test_a_closed_session_says_so() -> None:
    with dc.connect({"who": [1, 2]}, unit=dc.User("who"), budget=dc.PureDP(1), table="people") as opened:
        assert "remaining=PureDP(epsilon=1)" in repr(opened)
    assert repr(opened).endswith("closed)")
    assert opened._repr_html_() is None


def test_accounts_with_a_budget_have_a_gauge(tmp_path: Any) -> None:
    rows = {"who": np.arange(100)}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.PureDP(1), "table": "people"}
    with dc.connect(rows, **facts, ledger=tmp_path / "books", study="s") as opened:
        opened.sql("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
        assert Page(opened._repr_html_()).texts.count("50.0 % used") == 1


def test_long_answers_are_cut_and_say_so() -> None:
    shown = table([Cells("n", [str(place) for place in range(1234)])], most=200)
    assert "<td>199</td>" in shown
    assert "<td>200</td>" not in shown
    assert "The first 200 of 1,234 rows." in shown


def test_releases_show_values_with_intervals_and_choices_without() -> None:
    vector = Laplace.for_epsilon(1, dimension=3).release(np.array([100, 200, 300]))
    texts = Page(vector._repr_html_()).texts
    assert {"value", "± 95 %", "(ε = 1)"} <= set(texts)
    assert len([text for text in texts if re.fullmatch(r"[\d,−]+(\.\d+)?", text)]) == 6
    choice = Page(dc.Release("Ely", dc.PureDP("0.5"), ())._repr_html_()).texts
    assert {"Ely", "(ε = 0.5)"} <= set(choice)


def test_html_needs_no_library_of_charts() -> None:
    program = (
        "import sys, discreet as dc\n"
        "with dc.connect({'who': [1, 2]}, unit=dc.User('who'), budget=dc.PureDP(1), table='t') as s:\n"
        "    q = 'SELECT COUNT(*) AS n FROM t'\n"
        "    shown = s._repr_html_() + s.price(q, epsilon=1)._repr_html_() + s.sql(q, epsilon=1)._repr_html_()\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "altair" not in loaded
