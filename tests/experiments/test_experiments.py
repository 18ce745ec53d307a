"""Every experiment holds at small sizes, draws its figure, and notices when what it measures is broken."""

import doctest
import importlib
import math
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.soak import SOAK

FOLDER = Path(__file__).parents[2] / "experiments"
SCRIPTS = (
    "base_generators",
    "boosting",
    "composition",
    "gaussian_calibration",
    "generalization",
    "group_privacy",
    "multiplicative_weights",
    "neighbour_set",
    "projection",
    "randomized_response",
    "reconstruction",
    "robust_scale",
    "sample_and_aggregate",
    "significant_features",
    "small_database",
    "stable_privacy",
    "staircase",
    "subsampled",
    "tracing",
)
LONG = {"base_generators", "multiplicative_weights", "neighbour_set", "projection", "reconstruction", "small_database"}
"""These take as long as all others together. `make test` leaves them to `make soak`: the mechanisms that they draw keep
to the same bounds in tests/synopses, tests/noise and tests/adversary."""
RUN = [name for name in SCRIPTS if SOAK or name not in LONG]
AXES = {
    "base_generators": "worst error, records",
    "boosting": "part of all queries that the median gets wrong",
    "composition": "number of releases k",
    "gaussian_calibration": "true δ / stated δ",
    "generalization": "part of D that is answered wrongly",
    "group_privacy": "people in the group, k",
    "multiplicative_weights": "worst error, records",
    "neighbour_set": "rate at the best δ of the map",
    "projection": "mean squared error of a count",
    "randomized_response": "error of the worst fraction",
    "reconstruction": "bits guessed right",
    "robust_scale": "releases without an answer within a factor of 2",
    "sample_and_aggregate": "points below the fit to everybody",
    "significant_features": "releases without the right answer",
    "small_database": "people that the worst query is off by",
    "stable_privacy": "the least that an audit leaves",
    "staircase": "E|noise| / Δ",
    "subsampled": "runs of the function",
    "tracing": "members that are claimed",
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_every_script_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*SCRIPTS, "curves", "harness"}
    assert {*SCRIPTS} == PLANTED.keys() > LONG


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_can_be_run(name: str, load: Callable[[str], ModuleType]) -> None:
    script = load(name)
    assert callable(script.EXPERIMENT.measure)
    assert callable(getattr(script, PLANTED[name][0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_bounds_hold_and_the_figure_is_written(
    name: str, load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = load(name).EXPERIMENT
    rows = experiment.run(quick=True, out=tmp_path)
    assert len(rows) >= 20
    for row in rows:
        assert row.claim == "none" or row.measured - row.doubt <= row.bound, row
        assert row.claim != "equal" or row.measured + row.doubt >= row.bound, row
        assert all(map(math.isfinite, (row.bound, row.measured, row.doubt))), row
    picture, drawing = tmp_path / f"{name}.png", (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert drawing.startswith("<svg")
    for words in (experiment.title, experiment.claim, AXES[name]):
        assert words.replace("<", "&lt;") in drawing
    printed = capsys.readouterr()
    assert "claims hold" in printed.out
    assert not printed.err


def _halved(compose: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        loss = compose(*arguments)
        return type(loss)(loss.epsilon / 2, loss.delta)

    return wrong


def _quieter(mechanism: type) -> Any:
    """Gaussian noise calibrated as usual, then made 2 % smaller."""

    class Quieter(mechanism):
        @classmethod
        def for_approx(cls, *arguments: Any, **options: Any) -> Any:
            honest = mechanism.for_approx(*arguments, **options)
            return replace(honest, sigma=honest.sigma * Fraction(98, 100))

    return Quieter


def _bolder(mechanism: type) -> Any:
    """Randomized response with error bars a quarter as long."""

    class Bolder(mechanism):
        def accuracy(self, *arguments: Any) -> float:
            return super().accuracy(*arguments) / 4

    return Bolder


def _whispering(laplace: type) -> type:
    """Noise for ten thousand times the ε."""

    class Whispering(laplace):
        @classmethod
        def for_epsilon(cls, epsilon: Any, *arguments: Any, **options: Any) -> Any:
            return laplace.for_epsilon(10_000 * Fraction(epsilon), *arguments, **options)

    return Whispering


def _mistaken(mwem: type) -> type:
    """A synopsis of other data."""

    class Mistaken(mwem):
        def release(self, cells: Any, **options: Any) -> Any:
            return super().release(cells[::-1], **options)

    return Mistaken


def _optimistic(projection: type) -> type:
    """A bound a thousand times too small."""

    class Optimistic(projection):
        def squared_error(self, *arguments: Any) -> float:
            return super().squared_error(*arguments) / 1000

    return Optimistic


def _perverse(boosting: type) -> type:
    """Queries answered well are drawn again."""

    class Perverse(boosting):
        def _credit(self, *arguments: Any) -> Any:
            return -super()._credit(*arguments)

    return Perverse


def _telling(mode: Callable[..., Any]) -> Callable[..., Any]:
    """The mode, and how many votes there were."""

    def wrong(*arguments: Any, **options: Any) -> Any:
        class Telling(type(mode(*arguments, **options))):
            def release(self, data: Any, **options: Any) -> Any:
                return replace(super().release(data, **options), values=len(data))

        honest = mode(*arguments, **options)
        return Telling(**{field.name: getattr(honest, field.name) for field in fields(honest)})

    return wrong


def _silent(subsampled: type) -> type:
    """Never an answer."""

    class Silent(subsampled):
        def release(self, data: Any, **options: Any) -> Any:
            return replace(super().release(data, **options), values=None)

    return Silent


def _shy(raw: type) -> type:
    """Chances as for a quarter of ε and a billionth of δ."""

    class Shy(raw):
        def release(self, choices: Any, **options: Any) -> Any:
            return replace(self, delta=self.delta / 10**9, epsilon=self.epsilon / 4)._release(choices, **options)

        def _release(self, choices: Any, **options: Any) -> Any:
            return super().release(choices, **options)

    return Shy


def _idle(workers: type) -> type:
    """Blocks that never answer."""

    class Idle(workers):
        def answers(self, block: Any, count: int, progress: Any = None) -> Any:
            return [None] * count

    return Idle


PLANTED = {
    "base_generators": ("LinearGenerator", _mistaken),
    "boosting": ("Boosting", _perverse),
    "composition": ("advanced", _halved),
    "gaussian_calibration": ("Gaussian", _quieter),
    "generalization": ("uniform", lambda draw: lambda below, size: draw(max(2, below // 1000), size)),
    "group_privacy": ("group", lambda group: lambda guarantee, k: group(guarantee, max(1, k - 1))),
    "multiplicative_weights": ("MWEM", _mistaken),
    "neighbour_set": ("ShellLaw", lambda law: lambda shells, epsilon: law(shells, epsilon * 1.5)),
    "projection": ("Projection", _optimistic),
    "randomized_response": ("RandomizedResponse", _bolder),
    "reconstruction": ("Laplace", _whispering),
    "robust_scale": ("StabilityTest", lambda test: lambda epsilon, delta, rule: test(epsilon, 8 * delta, rule)),
    "sample_and_aggregate": ("Workers", _idle),
    "significant_features": ("RawData", _shy),
    "small_database": ("SmallDatabase", _mistaken),
    "stable_privacy": ("mode", _telling),
    "staircase": ("discrete_laplace", lambda noise: lambda scale, size: noise(scale * 3 / 4, size)),
    "subsampled": ("SubsampledRelease", _silent),
    "tracing": ("discrete_laplace", lambda noise: lambda scale, size: noise(scale / 5000, size)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_planted_fault_is_noticed(
    name: str, load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load(name)
    attribute, spoil = PLANTED[name]
    monkeypatch.setattr(script, attribute, spoil(getattr(script, attribute)))
    assert any(row.broken for row in script.EXPERIMENT.measure(True))


def test_a_broken_bound_is_loud(
    load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness, staircase = load("harness"), load("staircase")
    setting = {"noise": staircase.LAPLACE, "ε": 1.0, "from": "nowhere"}
    fine = harness.Row({**setting, "noise": staircase.STAIRCASE}, bound=1.0, measured=1.0)
    for measured, code in ((1.1, 0), (1.3, 1)):
        rows = [fine, harness.Row(setting, bound=1.0, measured=measured, doubt=0.2)]
        planted = replace(staircase.EXPERIMENT, name="planted", measure=lambda quick, rows=rows: rows)
        assert planted.main(["--quick", "--out", str(tmp_path)]) == code
        printed = capsys.readouterr()
        assert ("1 OF 2 ROWS BREAK THEIR CLAIM" in printed.err) == bool(code)
        assert ("EXCEEDED" in printed.out) == bool(code)
        assert ("claims hold" in printed.out) != bool(code)


@pytest.mark.parametrize(
    ("claim", "measured", "doubt", "verdict"),
    [
        ("at most", 1.0, 0.0, "ok"),
        ("at most", 0.1, 0.0, "ok"),
        ("at most", 1.2, 0.1, "EXCEEDED"),
        ("at most", math.nan, 0.1, "EXCEEDED"),
        ("equal", 0.95, 0.1, "ok"),
        ("equal", 0.8, 0.1, "TOO LOW"),
        ("equal", 1.2, 0.1, "EXCEEDED"),
        ("none", 1.2, 0.1, "exceeds, outside the theorem"),
        ("none", 0.8, 0.1, "holds, outside the theorem"),
    ],
)
def test_verdicts(claim: str, measured: float, doubt: float, verdict: str, load: Callable[[str], ModuleType]) -> None:
    row = load("harness").Row({}, 1.0, measured, doubt, claim)
    assert row.verdict == verdict
    assert row.broken == (verdict in ("EXCEEDED", "TOO LOW"))


@pytest.mark.parametrize("name", ["curves", "harness"])
def test_examples_in_the_docstrings(name: str, load: Callable[[str], ModuleType]) -> None:
    failed, tried = doctest.testmod(load(name))
    assert tried
    assert not failed


def test_deviation_is_kept_by_the_right_scale_only(load: Callable[[str], ModuleType]) -> None:
    from discreet.noise import discrete_laplace

    allowed = load("harness").deviation(2 * 1000.0**2, 1000.0, 10**5)
    means = {scale: abs(discrete_laplace(scale, 10**5)).mean() for scale in (1000, 1070)}
    assert abs(means[1000] - 1000) <= allowed
    assert abs(means[1070] - 1000) > allowed


def test_misusing_theorem_a1_is_shown_and_not_counted(load: Callable[[str], ModuleType]) -> None:
    script = load("gaussian_calibration")
    misused = script._computed(10.0, 1e-5)[0]
    assert misused.exceeds
    assert not misused.broken
    within = script._computed(0.9, 1e-5)[0]
    assert within.claim == "at most"
    assert not within.exceeds
