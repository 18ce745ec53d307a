"""The commands that audit: mechanisms of anybody, and questions on made-up neighbours."""

from pathlib import Path

import pytest
from tests.app.commands import COUNT, INIT, Commands, write_visits
from tests.soak import SOAK

MECHANISMS = """
import numpy as np

generator = np.random.default_rng(0)

def count(rows, scale=1.0):
    return len(rows) + generator.geometric(1 - np.exp(-1 / scale)) - generator.geometric(1 - np.exp(-1 / scale))

class Noisy:
    epsilon = 1.0

    def __init__(self, scale):
        self.scale = scale

    def randomise(self, value):
        return value + generator.laplace(0, self.scale)

def sometimes(rows):
    if generator.random() < 0.5:
        raise ValueError("bad luck")
    return 0

def make(scale):
    return Noisy(scale)
"""
ROWS = ("--domain", "0:1", "--rows", "2", "--neighbours", "add_remove")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    (tmp_path / "audited_here.py").write_text(MECHANISMS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Commands(tmp_path)


def test_an_honest_mechanism_passes_and_half_its_noise_does_not(run):
    terms = ("audit", "mechanism", "audited_here:count", *ROWS, "--epsilon", "1", "--samples", "8000")
    assert "Nothing against ε = 1" in run(*terms).output
    found = run(*terms, "--option", "scale=0.4", code=1).output
    assert "BROKEN" in found
    assert "would have been caught" in found


@pytest.mark.parametrize("target", ["audited_here:Noisy", "audited_here:make()"])
def test_a_mechanism_of_another_library_states_its_own_claim(run, target):
    terms = ("audit", "mechanism", target, "--option", "scale=0.2", "--d", "0.0", "--d-prime", "1.0")
    found = run.json(*terms, "--samples", "4000", code=1)
    assert found["claim"] == {"definition": "PureDP", "epsilon": "1"}
    assert found["refuted"]
    assert found["epsilon"] > 1


def test_a_program_is_run_line_by_line(run):
    terms = ("audit", "mechanism", "--command", "cat", "--d", "[1]", "--d-prime", "[2]", "--samples", "1000")
    assert run.json(*terms)["epsilon"] > 3


def test_a_mechanism_that_raises_is_not_passed_in_silence(run):
    terms = ("audit", "mechanism", "audited_here:count", "--d", "1", "--d-prime", "2", "--epsilon", "1")
    assert "NOTHING: it raised in each of 10 runs" in run(*terms, "--html", "page.html", code=1).output
    assert "NOTHING: it raised" in (run.folder / "page.html").read_text()
    told = run.json(*terms, code=1)
    assert told["refuted"] is None
    assert "TypeError" in told["verdict"]
    half = ("audit", "mechanism", "audited_here:sometimes", "--domain", "0:1", "--rows", "9", "--samples", "500")
    assert "ValueError: bad luck" in run.json(*half)["raised"]
    assert "bad luck" in " ".join(run(*half, "--html", "page.html").output.split())
    assert "bad luck" in (run.folder / "page.html").read_text()


def test_an_audit_that_found_nothing_speaks_of_no_event(run):
    terms = ("audit", "mechanism", "math:isnan", "--d", "1", "--d-prime", "2", "-e", "1")
    said = " ".join(run(*terms, "--samples", "4000").output.split())
    assert "No event was found that tells D from D′. One in half of the runs" in said
    assert "as the one tested" not in said
    assert "with so few runs" in " ".join(run(*terms, "--samples", "100").output.split())


def test_last_bits_that_give_doubles_away_are_explained(run):
    terms = ("audit", "mechanism", "audited_here:Noisy", "--option", "scale=1", "--d", "0.0", "--d-prime", "1.0")
    said = " ".join(run(*terms, "--samples", "20000", "--plot", "curve.svg", code=1).output.split())
    assert "the last bits of numbers" in said
    assert "told apart by the last binary digits of the output, which are others on D" in said
    assert "lowest set bit" not in said
    assert "BROKEN: the claim" in (run.folder / "curve.svg").read_text()


def test_a_question_that_is_refused_is_not_called_sound(run):
    write_visits(run.folder / "visits.parquet")
    run(*INIT)
    found = run("audit", "session", "SELECT nope FROM visits", "--runs", "0").output
    assert "1 was refused" in " ".join(found.split())
    assert "sound" not in found


def test_pages_and_pictures_are_written(run):
    terms = ("audit", "mechanism", "audited_here:count", *ROWS, "-e", "1", "--samples", "400")
    run(*terms, "--html", "page.html", "--plot", "curve.svg")
    page = (run.folder / "page.html").read_text()
    assert "Trade-off curve" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "<svg" in (run.folder / "curve.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "MODULE:NAME"),
        (("audited_here:count",), "--d"),
        (("audited_here:count", "--d", "0"), "--d"),
        (("audited_here:count", "--d", "0", "--d-prime", "x"), "JSON"),
        (("audited_here:nothing", "--d", "0", "--d-prime", "1"), "target"),
        (("audited_here.py:count", "--d", "0", "--d-prime", "1"), "write audited_here:count"),
        (("audited_here:count", "--domain", "5"), "LOW:HIGH"),
        (("audited_here:count", "--domain", "5:1"), "low"),
        (("audited_here:count", "--d", "0", "--d-prime", "1", "--delta", "0.1"), "ε"),
        (("--command", "exit 7", "--d", "0", "--d-prime", "1"), "code 7"),
        (("--command", "head -1", "--d", "0", "--d-prime", "1"), "one line"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given) or "nothing",
)
def test_bad_arguments_are_named(run, arguments, said):
    assert said in run("audit", "mechanism", *arguments, code=2).output


def test_questions_of_the_configured_session_are_replayed_and_nothing_is_charged(run):
    write_visits(run.folder / "visits.parquet")
    run(*INIT)
    before = sorted(path.name for path in run.folder.iterdir())
    found = run.json("audit", "session", COUNT, "--runs", "0")
    assert found["passed"]
    assert found["questions"][0]["strain"] > 0.9
    assert sorted(path.name for path in run.folder.iterdir()) == before


@pytest.mark.skipif(not SOAK, reason="`make audit`, which follows `make test` in .ci/run, does the same with more runs")
def test_the_demo_is_audited(run):
    """What the continuous check runs: the demo's survey and questions, with few runs."""
    result = run("audit", "session", "--demo", "--runs", "100", "--html", "audit.html")
    assert "Nothing was found: 4 questions" in result.output
    assert "Trade-off curve" in (run.folder / "audit.html").read_text()
