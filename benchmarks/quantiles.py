"""Private quantiles: time next to numpy's sort, and error next to OpenDP's and diffprivlib's, in one run. Then ranges,
trimmed means and modes as SQL answers them, next to the other ways there are.

All answer the same question at the same ε for a row added or removed, within the same bounds. OpenDP is given as many
evenly spaced candidates as it scores in reasonable time, and for whole numbers exactly those; diffprivlib picks reals.
Smooth sensitivity of trimmed means is for rows exchanged.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import opendp.prelude as dp

from discreet import Bounds, PureDP
from discreet.mechanisms import Quantile, Quantiles
from discreet.noise import Entropy
from discreet.robust import InterquartileRange, Scale, SmoothSensitivity, TrimmedMean, Unstable, mode
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.quantiles import QuantilePlan, Rank
from discreet.sql.statement.histograms import Cells, Histograms
from timing import best_of

SIZE = 10**7
ROWS, TABLES, RUNS = 10_000, 20, 15
CANDIDATES = 4096
EPSILON, DELTA = 1, "1e-6"
REPEATED = 300


def diffprivlib_quantile() -> Callable[..., Any]:
    """The peer's quantile; its models do not import beside recent versions of scikit-learn, and are not needed."""
    found = find_spec("diffprivlib")
    assert found is not None
    package = types.ModuleType("diffprivlib")
    package.__path__ = list(found.submodule_search_locations or [])
    sys.modules["diffprivlib"] = package
    from diffprivlib.tools.quantiles import quantile

    return quantile


def opendp_quantile(q: float, low: float, high: float, step: float | None) -> Callable[[list[float]], float]:
    count = CANDIDATES if step is None else round((high - low) / step) + 1
    candidates = np.linspace(low, high, count).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def make(scale: float) -> Any:
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, alpha=q, scale=scale)

    return make(dp.binary_search_param(make, d_in=1, d_out=float(EPSILON)))


def main() -> None:
    dp.enable_features("contrib")
    generator = np.random.default_rng(1)
    peer = diffprivlib_quantile()
    values = generator.normal(size=SIZE)
    median = Quantile("0.5", EPSILON, Bounds(-100, 100))
    percentiles = Quantiles(tuple(f"0.{k:02d}" for k in range(1, 100)), EPSILON, Bounds(-100, 100))
    scale = Scale(epsilon=EPSILON, delta=DELTA, bounds=Bounds(-100, 100))
    seconds = best_of(
        {
            "numpy sort": lambda: np.sort(values),
            "median": lambda: median.release(values),
            "99 percentiles": lambda: percentiles.release(values),
            "range (Scale)": lambda: scale.release(values),
        },
        rounds=3,
    )
    print(f"{SIZE:,} values, ε = {EPSILON}: numpy sort {seconds['numpy sort']:.2f} s")
    for name in ("median", "99 percentiles", "range (Scale)"):
        print(f"  {name:15s} {seconds[name]:.2f} s, {seconds[name] / seconds['numpy sort']:.1f}× sort (wanted ≤ 5)")
    print(f"mean error over {TABLES} tables of {ROWS:,} rows, {RUNS} runs each, ε = {EPSILON}: in ranks, and in values")
    cases: dict[str, tuple[Callable[[], Any], float, float, float | None]] = {
        "normal": (lambda: generator.normal(0, 1, ROWS), -20, 20, None),
        "log-normal": (lambda: generator.lognormal(0, 1, ROWS), 0, 100, None),
        "heavy ties": (lambda: np.round(generator.normal(40, 5, ROWS)), 0, 120, 1),
        "bimodal": (lambda: generator.normal(generator.choice([-5, 5], ROWS), 1), -20, 20, None),
    }
    for name, (sample, low, high, step) in cases.items():
        for q in (0.5, 0.9):
            mechanism = Quantile(str(q), EPSILON, Bounds(low, high), None if step is None else str(step))
            scored = opendp_quantile(q, low, high, step)
            errors: dict[str, list[Any]] = {"discreet": [], "OpenDP": [], "diffprivlib": []}
            for _ in range(TABLES):
                data = sample()
                listed = data.tolist()
                bounds = (low, high)
                errors["discreet"].append(_errors(data, q, [mechanism.release(data).values for _ in range(RUNS)]))
                errors["OpenDP"].append(_errors(data, q, [scored(listed) for _ in range(RUNS)]))
                theirs = [peer(data, q, epsilon=EPSILON, bounds=bounds, random_state=k) for k in range(RUNS)]
                errors["diffprivlib"].append(_errors(data, q, theirs))
            means = {who: np.mean(found, axis=0) for who, found in errors.items()}
            shown = "   ".join(f"{who} {ranks:7.2f} {values:.5f}" for who, (ranks, values) in means.items())
            print(f"  {name:11s} q={q}  {shown}")

    statistics(generator)
    modes()


def statistics(generator: np.random.Generator) -> None:
    """Ranges and trimmed means of 10,000 values: by ranks as in SQL, and by the mechanisms of discreet.robust."""
    cases: dict[str, tuple[Callable[[], Any], int, int]] = {
        "normal": (lambda: generator.normal(0, 1, ROWS), -20, 20),
        "log-normal": (lambda: generator.lognormal(8, 0.7, ROWS), 0, 10**6),
        "heavy ties": (lambda: np.round(generator.normal(40, 5, ROWS)), 0, 120),
        "bimodal": (lambda: generator.normal(generator.choice([-5, 5], ROWS), 1), -20, 20),
    }
    print(f"ranges and trimmed means of {ROWS:,} values, ε = {EPSILON}, {REPEATED} runs: mean error in % of the range")
    for name, (sample, low, high) in cases.items():
        data = sample()
        bounds, entropy = Bounds(low, high), Entropy.for_tests(0)
        cells = Cells.of(bounds, whole=name == "heavy ties", keys=1)
        places, counts = np.unique(cells.line.places(data), return_counts=True)
        held = Histograms({(): places}, {(): counts})
        spread = np.subtract(*np.quantile(data, [0.75, 0.25]))
        centre = np.sort(data)[ROWS // 10 : -ROWS // 10].mean()
        shown = []
        for function, truth in (("iqr", spread), ("trimmed_mean", centre)):
            plan = QuantilePlan.best((Rank.of(function, _TENTH, cells),), "l1", PureDP(EPSILON), 1)
            ranked = [drawn.value for drawn in plan.release([held], [()] * REPEATED, 1, entropy)[0]]
            statistic = InterquartileRange() if function == "iqr" else TrimmedMean(_TENTH)
            way = "add_remove" if function == "iqr" else "replace"
            smooth = SmoothSensitivity(statistic, EPSILON, bounds, step=cells.line.step, neighbours=way)
            followed = [smooth.release(data, entropy=entropy).values for _ in range(REPEATED // 10)]
            off = [np.abs(np.array(found) - truth).mean() / spread * 100 for found in (ranked, followed)]
            shown.append(f"{function} by ranks {off[0]:.3f}, smooth {off[1]:.3f}")
        scale = Scale(epsilon=EPSILON, delta=DELTA, bounds=bounds, step=cells.line.step)
        told = [scale.release(data, entropy=entropy).values for _ in range(REPEATED)]
        near = np.mean([not isinstance(each, Unstable) and spread / 2 <= each <= spread * 2 for each in told])
        answers = [abs(each - spread) / spread * 100 for each in told if not isinstance(each, Unstable)]
        off = f"{np.mean(answers):.1f}" if answers else "never"
        print(f"  {name:11s} {';  '.join(shown)};  Scale {off}, within a factor 2 in {near * 100:.1f} %")


def modes() -> None:
    """How often the most frequent value comes out, by how far it leads: as in SQL, and where stable."""
    print(f"most frequent value, ε = {EPSILON}, δ = {DELTA}, {REPEATED} runs: right / wrong / ⊥ in %")
    for first, second in ((40, 0), (40, 30), (40, 38), (20, 0), (20, 15), (10, 0)):
        counts = Histograms.of_values([(0, "a", first, 0), (0, "b", second, 0)], None, None)
        plan = QuantilePlan((Mode(None),), "l1", "sum", Fraction(EPSILON), 1, delta=Fraction(DELTA))
        drawn = [each.value for each in plan.release([counts], [()] * REPEATED, 1, Entropy.for_tests(0))[0]]
        stable = mode(epsilon=EPSILON, delta=DELTA)
        entropy, rows = Entropy.for_tests(0), ["a"] * first + ["b"] * second
        told = [stable.release(rows, entropy=entropy).values for _ in range(REPEATED)]
        shares = [
            " / ".join(f"{sum(map(is_so, found)) / REPEATED * 100:5.1f}" for is_so in (_right, _wrong, _nothing))
            for found in (drawn, told)
        ]
        print(f"  {first} of a, {second} of b:  SQL {shares[0]}   StableRelease {shares[1]}")


def _right(value: Any) -> bool:
    return bool(value == "a")


def _wrong(value: Any) -> bool:
    return bool(value == "b")


def _nothing(value: Any) -> bool:
    return not value


_TENTH = Fraction(1, 10)


def _errors(data: np.ndarray[Any, Any], q: float, answers: list[float]) -> tuple[float, float]:
    """How far answers are from the quantile on average: in ranks, and in values."""
    ordered = np.sort(data)
    least, most = np.searchsorted(ordered, answers, "left"), np.searchsorted(ordered, answers, "right")
    ranks = np.maximum(np.maximum(least - q * data.size, q * data.size - most), 0)
    truth = np.quantile(ordered, q, method="inverted_cdf")
    return float(ranks.mean()), float(np.abs(np.array(answers) - truth).mean())


if __name__ == "__main__":
    main()
