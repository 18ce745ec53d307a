"""A mechanism on show: what it claims, and two neighbouring data sets on which to hold it to that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.adversary import Audit, audit
from discreet.core.losses import ApproxDP, Loss

Random = np.random.Generator


@dataclass(frozen=True)
class Specimen:
    """`run(data, rng)` gives one output, or `batch(data, n, rng)` gives n of them."""

    name: str
    claim: Loss
    d: Any
    d_prime: Any
    reason: str
    vulnerability: int | None = None
    samples: int = 100_000
    run: Callable[[Any, Random], Any] | None = None
    batch: Callable[[Any, int, Random], Any] | None = None

    def examine(self, rng: Random, confidence: float = 1 - 1e-9) -> Audit:
        """Audit the specimen at the δ it claims."""
        batch, run = self.batch, self.run
        return audit(
            None if run is None else lambda data: run(data, rng),
            self.d,
            self.d_prime,
            samples=self.samples,
            confidence=confidence,
            delta=self.claim.delta if isinstance(self.claim, ApproxDP) else 0,
            batch=None if batch is None else lambda data, n: batch(data, n, rng),
        )


class Collection(list[Specimen]):
    """Specimens gathered by decorating their functions."""

    def add(
        self, claim: Loss, d: Any, d_prime: Any, reason: str, *, each: bool = False, **more: Any
    ) -> Callable[..., Any]:
        """Exhibit the decorated function; with `each` it makes one output, otherwise many at once."""

        def exhibit(function: Callable[..., Any]) -> Callable[..., Any]:
            how = {"run" if each else "batch": function}
            self.append(Specimen(function.__name__, claim, d, d_prime, reason, **how, **more))
            return function

        return exhibit


def discrete_laplace(rng: Random, scale: float, size: int | tuple[int, ...]) -> Any:
    """P(k) ∝ exp(−|k|/scale): the difference of two geometric variables."""
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)
