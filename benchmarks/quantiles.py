"""Private quantiles: time next to numpy's sort, and error next to OpenDP's and diffprivlib's, in one run.

All answer the same question at the same ε for a row added or removed, within the same bounds. OpenDP is given as many
evenly spaced candidates as it scores in reasonable time, and for whole numbers exactly those; diffprivlib picks reals.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import opendp.prelude as dp

from discreet import Bounds
from discreet.mechanisms import Quantile, Quantiles
from timing import best_of

SIZE = 10**7
ROWS, TABLES, RUNS = 10_000, 20, 15
CANDIDATES = 4096
EPSILON = 1


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
    seconds = best_of(
        {
            "numpy sort": lambda: np.sort(values),
            "median": lambda: median.release(values),
            "99 percentiles": lambda: percentiles.release(values),
        },
        rounds=3,
    )
    print(f"{SIZE:,} values, ε = {EPSILON}: numpy sort {seconds['numpy sort']:.2f} s")
    for name in ("median", "99 percentiles"):
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


def _errors(data: np.ndarray[Any, Any], q: float, answers: list[float]) -> tuple[float, float]:
    """How far answers are from the quantile on average: in ranks, and in values."""
    ordered = np.sort(data)
    least, most = np.searchsorted(ordered, answers, "left"), np.searchsorted(ordered, answers, "right")
    ranks = np.maximum(np.maximum(least - q * data.size, q * data.size - most), 0)
    truth = np.quantile(ordered, q, method="inverted_cdf")
    return float(ranks.mean()), float(np.abs(np.array(answers) - truth).mean())


if __name__ == "__main__":
    main()
