"""Fingerprinting codes: words such that whoever publishes a mixture of some of them can be traced.

Every user has a word of d bits; column j has bias p_j, drawn with density ∝ 1/√(p(1−p)) on [t, 1−t], and each bit is 1
with probability p_j. A coalition publishes a word, or means, with the one condition that where all of them have the
same bit, that bit is published. The score of a user against the published a, in the symmetric form (Tardos 2003;
Škorić, Katzenbeisser and Celik 2008),

    S_u = Σ_j (2a_j − 1)·(x_uj − p_j)/√(p_j(1 − p_j)),

has mean 0 and variance Σ(2a_j − 1)² ≤ d for innocents, while the coalition's scores add up to about 2d/π together. So
with d ≥ (π²/2)·n²·ln(1/α) columns somebody in a coalition of n is accused. A release of column means that is off by
less than ½ everywhere is such a coalition: no private release is so accurate once d ≫ n² (Bun, Ullman and Vadhan
2014).

>>> code = FingerprintCode.generate(users=60, coalition=10, alpha=0.001, test_entropy=Entropy.for_tests(3))
>>> code.length
3409
>>> found = code.accuse((code.words[:10].mean(axis=0) > 0.5) * 1, members=np.arange(60) < 10)
>>> found.claims[:10].any(), found.claims[10:].any()
(np.True_, np.False_)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.membership.from_means import ALPHA, Tracing, judgement
from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform

__all__ = ["FingerprintCode"]

Doubles = NDArray[np.float64]
GRAIN = 1 << 53


@dataclass(frozen=True, eq=False)
class FingerprintCode:
    """Words of users, and the secret biases that trace them."""

    words: NDArray[np.int64] = field(repr=False)
    biases: Doubles = field(repr=False)
    coalition: int
    alpha: float

    @classmethod
    def generate(
        cls,
        users: int,
        coalition: int,
        *,
        alpha: float = ALPHA,
        length: int | None = None,
        test_entropy: Entropy | None = None,
    ) -> FingerprintCode:
        """Words that trace coalitions of up to so many users; `alpha` is the false alarm rate of one innocent."""
        many, c = natural("users", users), natural("coalition", coalition)
        if not 0 < alpha < 1:
            raise InvalidArgument("alpha", alpha, "above 0 and below 1", "0.001 is one false alarm in a thousand")
        d = math.ceil(math.pi**2 / 2 * c * c * math.log(1 / alpha)) if length is None else natural("length", length)
        cut = math.asin(math.sqrt(1 / (300 * c)))
        angles = cut + (math.pi / 2 - 2 * cut) * uniform(GRAIN, d, entropy=test_entropy) / GRAIN
        biases = np.asarray(np.sin(angles) ** 2, np.float64)
        words = (uniform(GRAIN, (many, d), entropy=test_entropy) < biases * GRAIN).astype(np.int64)
        return cls(words, biases, c, float(alpha))

    @property
    def length(self) -> int:
        """d."""
        return int(self.biases.size)

    def accuse(self, published: ArrayLike, members: ArrayLike | None = None) -> Tracing:
        """Scores every user against what was published: a word, or means within [0, 1]; others are cut to that.

        p-values are from the normal distribution with the exact variance.
        """
        from scipy.stats import norm

        a = np.clip(np.asarray(published, np.float64).reshape(-1), 0.0, 1.0)
        if a.size != self.length or not np.isfinite(a).all():
            wanted = f"{self.length} numbers from 0 to 1"
            raise InvalidArgument("published", f"{a.size} numbers", wanted, "give one for each column of the code")
        pull = (2 * a - 1) / np.sqrt(self.biases * (1 - self.biases))
        scores = (self.words - self.biases) @ pull
        spread = float(np.sqrt(((2 * a - 1) ** 2).sum())) or 1.0
        chances = norm.sf(scores / spread)
        null = "normal: a sum of independent terms of known variance"
        return judgement(scores, chances, "symmetric accusation", null, self.alpha, members)
