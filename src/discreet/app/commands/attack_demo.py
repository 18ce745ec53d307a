"""The story of `discreet attack demo`: releases that looked safe, what is read off them, and the same tried on ours.

The hospitals are made up; the survey is the RAND Health Insurance Experiment, bundled and public.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.adversary.differencing.answerers import OfConnection, OfSession, Restricted
from discreet.adversary.differencing.attack import difference, track
from discreet.adversary.differencing.suppression import margins, unsuppress
from discreet.adversary.findings import Finding
from discreet.adversary.linkage import example_hospitals as hospitals
from discreet.adversary.linkage.anonymity import how_anonymous
from discreet.adversary.linkage.intersection import intersect
from discreet.adversary.membership.example_studies import Study, divided, redrawn
from discreet.adversary.membership.from_means import trace_means
from discreet.adversary.membership.from_rows import trace_rows
from discreet.adversary.membership.signed_rows import SignedData, noisy_answers, recombined
from discreet.app.output.finding import show, telling
from discreet.app.output.printing import say
from discreet.core.losses import PureDP
from discreet.core.units import Row, User
from discreet.samples import rand_hie
from discreet.session.connect import connect
from discreet.session.session import Session

__all__ = ["run"]

HER = "site = 6 AND age = 35 AND family_size = 7 AND health = 'poor' AND year = 1"
COVERS = ("year = 1", "site = 6", "1 = 1")
TRACKERS = ("female = 1", "age < 30", "site < 4")
BILL = "SELECT SUM(spending) FROM survey WHERE {condition}"
COUNT = "SELECT COUNT(*) FROM survey WHERE {condition}"
COLUMNS = ("site", "age", "female", "family_size", "health", "doctor_visits", "income")


def run() -> None:
    """Five attacks, each on something unprotected and on ours."""
    survey = rand_hie()
    _hospitals()
    _differences(survey)
    _suppressed(survey)
    _means()
    _rows(survey)
    _signed()
    _say("The same on your own release: discreet attack link, difference, trace and reconstruct.")


def _hospitals() -> None:
    _say(
        "1. Two hospitals. The first publishes its patients without names. Zhao Lina's neighbour knows that she is 56"
        " and was there; who else is 56?"
    )
    _show(how_anonymous(hospitals.FIRST_NAMED, ["age"], hospitals.SENSITIVE))
    _say("So ages and postcodes are blurred, until everybody shares theirs with somebody else:")
    _show(how_anonymous(hospitals.FIRST, hospitals.QUASI, hospitals.SENSITIVE))
    _say("The second hospital did the same with its own patients, and she was there too:")
    tables = {"first": hospitals.FIRST, "second": hospitals.SECOND}
    found = intersect(tables, hospitals.QUASI, hospitals.SENSITIVE, hospitals.KNOWN)
    _show(found, found.lines())
    say(f"Zhao Lina: {', '.join(*found.left)}")
    _say("Both hospitals answer through us instead: women from 50 to 60 by diagnosis, at ε = 0.5 each.")
    illnesses = list(dict.fromkeys([*hospitals.FIRST[hospitals.SENSITIVE], *hospitals.SECOND[hospitals.SENSITIVE]]))
    seen = dict.fromkeys(illnesses, 0.0)
    for table in (hospitals.FIRST, hospitals.SECOND):
        private = {name: table[name] for name in ("age", "sex", "diagnosis")}
        facts = {"age": ["50-60", "60-70"], "sex": ["F", "M"], "diagnosis": illnesses}
        question = "SELECT diagnosis, COUNT(*) AS n FROM t WHERE age = '50-60' AND sex = 'F' GROUP BY diagnosis"
        with _opened(private, unit=Row(), budget=PureDP(1), table="t", values=facts) as session:
            for illness, count in session.sql(question, epsilon="0.5").rows:
                seen[illness] += float(count)
    best = sorted(seen, key=lambda illness: -seen[illness])[:3]
    say(f"most likely now: {', '.join(f'{name} ({seen[name]:.0f})' for name in best)}")
    chance = math.exp(1) / (math.exp(1) + len(illnesses) - 1)
    say(f"Whoever guesses from that is right with a chance of at most {chance * 100:.0f} %.")


def _differences(survey: Any) -> None:
    _say(
        "2. One woman's medical bill. A health survey answers sums, but never about fewer than ten people. She is 35,"
        " at site 6, in a family of seven and in poor health. Sums with and without her are about crowds:"
    )
    import duckdb
    import pyarrow

    with duckdb.connect(":memory:") as base:
        base.register("given", pyarrow.table(survey))
        base.execute("CREATE TABLE survey AS SELECT * FROM given")
        raw, size = OfConnection(base, BILL), OfConnection(base, COUNT)
        _show(found := difference(raw, HER, COVERS), found.lines())
        _say("Sums about all but ten are refused now as well. So half of the people pad every question (a tracker):")
        careful = Restricted(raw, size, least=10)
        _show(found := difference(careful, HER, ("1 = 1",)), found.lines())
        _show(found := track(careful, HER, TRACKERS), found.lines())
    _say("And here, at ε = 0.1 a question:")
    facts = {"spending": (0, 2000), "age": (0, 70), "family_size": (1, 15), "site": (1, 6), "year": (1, 5)}
    budget = PureDP(3)
    with _opened(survey, unit=User("person"), budget=budget, table="survey", bounds=facts, max_rows=5) as session:
        with telling("asking") as heard:
            found = track(OfSession(session, BILL, "0.1"), HER, TRACKERS, progress=heard.hear)
        _show(found, found.lines())


def _suppressed(survey: Any) -> None:
    _say("3. Small counts left out. Health by site, counts below 20 replaced by a mark, totals printed:")
    first = survey["year"] == 1
    kinds, sites = ("excellent", "good", "fair", "poor"), sorted(set(survey["site"].tolist()))
    table: dict[str, list[Any]] = {"health": [], "site": [], "count": []}
    for health in (*kinds, "total"):
        for site in (*sites, "total"):
            fits = first & ((survey["health"] == health) | (health == "total"))
            count = int((fits & ((survey["site"] == site) | (site == "total"))).sum())
            table["health"].append(health)
            table["site"].append(str(site))
            table["count"].append("*" if count < 20 and "total" not in (health, site) else count)
    _show(found := unsuppress(margins(table), least=20), found.lines())
    say("Counts with noise need no marks, and their totals pin nothing.")


def _means() -> None:
    _say(
        "4. Who was in the study? It publishes nothing but the shares of 5,000 traits among some 200 people, as studies"
        " of genomes did. Somebody has the traits of 400 people, and knows how common each is:"
    )
    study = Study.drawn(people=400, traits=5000)
    known: dict[str, Any] = {"population": study.population, "members": study.inside}
    _show(found := trace_means(study.means, study.bits, **known), found.lines())
    _say("The same shares with noise for ε = 1 over all of them:")
    _show(found := trace_means(study.private_means(1), study.bits, **known), found.lines())
    say("At that price 5,000 shares of 200 people are worth nothing: there is no private way to tell so much.")


def _rows(survey: Any) -> None:
    _say("5. Synthetic rows. A generator that overfits gives back rows of people; 2,000 are tried, half of them in:")
    _, first = np.unique(survey["person"], return_index=True)
    chosen, rest, inside = divided(first.size, 2000)
    tried, others = first[chosen], first[rest]
    data = {name: survey[name][tried[inside]] for name in COLUMNS}
    targets = {name: survey[name][tried] for name in COLUMNS}
    reference = {name: survey[name][others] for name in COLUMNS}
    with telling("scoring") as heard:
        found = trace_rows(redrawn(data), targets, reference, members=inside, alpha=0.01, progress=heard.hear)
    _show(found, found.lines())
    _say("Our synthetic rows of the same people at ε = 1:")
    ends = {"age": (0, 70), "family_size": (1, 15), "doctor_visits": (0, 60), "income": (0, 30_000)}
    lists: dict[str, list[Any]] = {"site": [1, 2, 3, 4, 5, 6], "female": [0, 1]}
    lists["health"] = ["excellent", "good", "fair", "poor"]
    bins = {"age": 7, "family_size": 5, "doctor_visits": 6, "income": 6}
    opened = _opened(data, unit=Row(), budget=PureDP(1), table="people", bounds=ends, values=lists)
    with opened as session, telling("making rows") as heard:
        made = session.synthesize("people", epsilon=1, bins=bins).to_arrow()
        heard.hear(0.5)
        found = trace_rows(made, targets, reference, members=inside, alpha=0.01)
    _show(found, found.lines())


def _signed() -> None:
    _say(
        "6. What no generator can do. Rows are signed messages, and the questions ask which share is signed by whom."
        " Synthetic rows that answer them hold valid signatures, and nobody can make these but by copying people:"
    )
    with telling("signing and checking") as heard:
        data = SignedData.generate(10_000, lambda part: heard.hear(part * 0.8))
        copied, made = data.trace(data.rows[:200]), data.trace(recombined(data.rows, 200))
        off = float(np.abs(noisy_answers(data, 1) - noisy_answers(data, 10**9)).max())
    _show(copied)
    _show(made)
    say(f"Counts with noise for ε = 1 answer the same questions, all of them within {off:.2f}.")


def _opened(rows: Any, **facts: Any) -> Session:
    """A session for the story alone: that its books end with it is as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return connect(rows, **facts)


def _say(words: str) -> None:
    say("\n" + textwrap.fill(words, 80) + "\n", bold=True)


def _show(found: Finding, lines: Sequence[tuple[str, str]] = ()) -> None:
    show(found, (), lines)
