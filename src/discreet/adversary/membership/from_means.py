"""Tracing: was this person in the data, of which only means were published?

Let q be the published means of n people in d attributes, p those of the population, and y one person. The score

    T(y) = Σ_j (y_j − p_j)·(q_j − p_j) / v_j,        v_j the variance of attribute j,

is 0 on average for somebody who is not in the data, whatever q is, and about d/n for each of those who are, with a
standard deviation of √(d·(1/n + s²)) if the means carry noise of s standard deviations of an attribute (Homer and
others 2008; Dwork and others 2015). So power needs d ≫ n + (n·s)²: `power_of_means`.

>>> import numpy as np
>>> people, inside = np.random.default_rng(0).integers(0, 2, (200, 6000)), np.arange(200) < 100
>>> found = trace_means(people[inside].mean(axis=0), people, population=np.full(6000, 0.5), members=inside)
>>> print(found)
BROKEN: 100 of 100 members were told apart, and 0 of 100 others.
people: 200 tried, 100 claimed at a false alarm rate of 0.001
score: inner product with the means
null: independent bits with the means of the population; Chernoff's bound on the tail
luck: so many more members than others are claimed by chance with a probability of 2.2e-59
>>> round(power_of_means(attributes=2000, people=100), 3), round(power_of_means(2000, 100, noise=2.0), 3)
(0.916, 0.002)

p-values. With `population`, attributes are independent bits under the null, and Chernoff's bound holds for any d. With
`reference`, rows of other people of the same population, half of them estimate p and the other half are scored like
targets: the p-value is the target's rank among them, which needs no independence of attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.figures import COLOURS, altair, styled
from discreet.adversary.findings import Finding, judged
from discreet.adversary.reconstruction.chance import epsilon_proven, most_by_chance
from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural
from discreet.noise.uniform import permutation

__all__ = ["Tracing", "power_of_means", "ranked", "trace_means"]

ALPHA = 0.001
LUCK = 1e-6
"""The test of all claims together calls luck an attack with this chance, at most."""
SMALLEST = 1e-3
"""Attributes that vary less say little, and are left out."""
BINS = 40

Doubles = NDArray[np.float64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Tracing(Finding):
    """Scores of people, and how likely each is by chance."""

    scores: Doubles = field(repr=False)
    chances: Doubles = field(repr=False)
    """p-values: how likely so high a score is for somebody who is not in the data."""
    score: str
    null: str
    alpha: float
    members: Coins | None = field(default=None, repr=False)
    """Who is in the data, where that is known."""

    @property
    def people(self) -> int:
        """How many were tried."""
        return int(self.scores.size)

    @property
    def claims(self) -> Coins:
        """Who is claimed to be in the data."""
        return np.asarray(self.chances <= self.alpha)

    @property
    def power(self) -> float | None:
        """The share of members who are claimed."""
        return None if self.members is None else float(self.claims[self.members].mean())

    @property
    def false_alarms(self) -> float | None:
        """The share of others who are claimed."""
        return None if self.members is None else float(self.claims[~self.members].mean())

    @property
    def area(self) -> float | None:
        """The chance that a member scores above somebody else (the area under the ROC curve); ½ is guessing."""
        if self.members is None:
            return None
        from scipy.stats import rankdata

        ranks, m = rankdata(self.scores), int(self.members.sum())
        return float((ranks[self.members].sum() - m * (m + 1) / 2) / (m * (self.people - m)))

    @property
    def right(self) -> int:
        """Right guesses if the half with the higher scores is said to be in the data."""
        if self.members is None:
            raise InvalidArgument("members", None, "who is in the data", "give it to the attack")
        guesses = np.zeros(self.people, bool)
        guesses[self._upper] = True
        return int((guesses == self.members).sum())

    def beats_chance(self, epsilon: float = 0.0) -> bool:
        """Whether more guesses are right than any attack on an ε-DP release gets, but for one in 10⁹.

        For this to hold, a fair coin must have decided for each target whether they are in the data.
        """
        return self.right > most_by_chance(self.people, epsilon)

    @property
    def epsilon_proven(self) -> float:
        """An ε below which the release cannot be private, if fair coins decided who is in the data."""
        return epsilon_proven(self.right, self.people)

    @property
    def luck(self) -> float:
        """How likely so many claims are if nobody could be told apart.

        Fisher's exact test of members against others, once for those claimed and once for the half with the higher
        scores; the smaller of the two chances is doubled. Without `members`, binomial with the false alarm rate.
        """
        from scipy.stats import binom, hypergeom

        claimed = int(self.claims.sum())
        if self.members is None:
            return float(binom.sf(claimed - 1, self.people, self.alpha))
        inside, caught = int(self.members.sum()), int(self.claims[self.members].sum())
        upper = int(self.members[self._upper].sum())
        by_claims = hypergeom.sf(caught - 1, self.people, claimed, inside)
        by_halves = hypergeom.sf(upper - 1, self.people, self._upper.size, inside)
        return float(min(1.0, 2 * min(by_claims, by_halves)))

    @cached_property
    def _upper(self) -> NDArray[np.int64]:
        """The half with the higher scores; among equal ones lots are drawn."""
        return np.lexsort((permutation(self.people), self.scores))[self.people // 2 :]

    @property
    def verdict(self) -> str:
        """In plain words."""
        claimed = int(self.claims.sum())
        if self.members is None:
            who = f"{claimed:,} of {self.people:,} people are told to be in the data"
            usual = f"where {self.alpha * self.people:.3g} are by chance if none is"
            return f"{judged(claimed, self.people) if self.luck <= LUCK else 'HELD'}: {who}, {usual}."
        inside = int(self.members.sum())
        caught = int(self.claims[self.members].sum())
        others = f"{claimed - caught:,} of {self.people - inside:,} others"
        if self.luck > LUCK:
            return f"HELD: {caught:,} of {inside:,} members and {others} were claimed, no more than by chance."
        right = (
            ""
            if caught * 2 >= inside
            else f"; guesses of who is in are right for {self.right / self.people * 100:.1f} %"
        )
        return (
            f"{judged(max(caught, 1), inside)}: {caught:,} of {inside:,} members were told apart, and {others}{right}."
        )

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        names = ("people", "score", "null", "alpha", "power", "false_alarms", "area", "luck")
        return {"claimed": int(self.claims.sum())} | {name: getattr(self, name) for name in names}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        claimed = f"{int(self.claims.sum()):,} claimed at a false alarm rate of {self.alpha:g}"
        said = [("people", f"{self.people:,} tried, {claimed}"), ("score", self.score), ("null", self.null)]
        many = "so many claims" if self.members is None else "so many more members than others"
        return [*said, ("luck", f"{many} are claimed by chance with a probability of {self.luck:.2g}")]

    def secrets(self) -> dict[str, Any]:
        """Who is claimed."""
        return {"claims": self.claims.tolist(), "chances": self.chances.tolist()}

    def plot(self) -> Any:
        """How scores spread, of members and others where that is known."""
        alt = altair()
        kinds: list[tuple[str, Doubles]] = [("people tried", self.scores)]
        if self.members is not None:
            kinds = [("in the data", self.scores[self.members]), ("not in the data", self.scores[~self.members])]
        low, high = np.quantile(self.scores, (0.001, 0.999)).tolist()
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
        rows = []
        for name, values in kinds:
            share = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / values.size
            ends = zip(share.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            rows += [{"low": low, "high": high, "share": part, "kind": name} for part, low, high in ends]
        bars = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar(opacity=0.65, binSpacing=0)
            .encode(
                x=alt.X("low:Q", bin="binned", title=f"score: {self.score}"),
                x2="high:Q",
                y=alt.Y("share:Q", stack=None, title="people", axis=alt.Axis(format="%")),
                color=alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS), legend=alt.Legend(orient="top")),
            )
        )
        return styled(bars.properties(width=520, height=260), self.verdict)


def power_of_means(attributes: int, people: int, noise: float = 0.0, alpha: float = ALPHA) -> float:
    """The share of members that the test claims, in the normal approximation: Φ(√(d/(n + (n·s)²)) − Φ⁻¹(1 − α)).

    `noise` is the standard deviation of the noise on a mean, in standard deviations of one person's attribute.
    """
    from scipy.stats import norm

    d, n = natural("attributes", attributes), natural("people", people)
    return float(norm.cdf((d / (n + (n * noise) ** 2)) ** 0.5 - norm.isf(alpha)))


def trace_means(
    means: ArrayLike,
    targets: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    population: ArrayLike | None = None,
    members: ArrayLike | None = None,
    alpha: float = ALPHA,
) -> Tracing:
    """Score each target against published means.

    `targets` has one row a person and one column a mean; attributes are bits, or numbers with `reference`.
    """
    q, y = np.asarray(means, np.float64).reshape(-1), _rows("targets", targets)
    if y.shape[1] != q.size or not np.isfinite(q).all() or not np.isfinite(y).all():
        wanted = f"finite, with {q.size} columns, one for each mean"
        raise InvalidArgument("targets", f"of shape {y.shape}", wanted, "give the same attributes in the same order")
    if (reference is None) == (population is None):
        raise InvalidArgument("population", population, "given, or else reference", "give one of the two")
    if population is not None:
        p = np.asarray(population, np.float64).reshape(-1)
        if p.size != q.size or not ((p >= 0) & (p <= 1)).all() or not np.isin(y, (0, 1)).all():
            wanted = f"{q.size} means of bits, and bits as targets"
            raise InvalidArgument("population", f"{p.size} numbers", wanted, "for other attributes give a reference")
        pull = _pull(q, p, p * (1 - p))
        scores = (y - p) @ pull
        null = "independent bits with the means of the population; Chernoff's bound on the tail"
        return judgement(scores, _tail(scores, p, pull), "inner product with the means", null, alpha, members)
    others = _rows("reference", reference)
    if others.shape[1] != q.size or len(others) < 20 or not np.isfinite(others).all():
        wanted = f"20 rows or more of {q.size} finite numbers"
        raise InvalidArgument("reference", f"of shape {others.shape}", wanted, "give people who are not in the data")
    half = len(others) // 2
    p = others[:half].mean(axis=0)
    pull = _pull(q, p, others[:half].var(axis=0))
    return ranked((y - p) @ pull, (others[half:] - p) @ pull, "inner product with the means", alpha, members)


def ranked(scores: Doubles, others: Doubles, score: str, alpha: float, members: ArrayLike | None = None) -> Tracing:
    """p-values by the rank of each score among those of other people: (1 + as high or higher)/(m + 1)."""
    beaten = others.size - np.searchsorted(np.sort(others), scores, side="left")
    null = f"rank among {others.size:,} people who are not in the data"
    return judgement(scores, (1 + beaten) / (others.size + 1), score, null, alpha, members, least=1 / (others.size + 1))


def judgement(
    scores: Doubles,
    chances: Doubles,
    score: str,
    null: str,
    alpha: float,
    members: ArrayLike | None,
    least: float = 0.0,
) -> Tracing:
    """A finding, after a look at what was given beside the scores."""
    if not max(least, 1e-300) <= alpha < 1:
        remedy = "more reference people allow smaller ones" if least else "0.001 is one false alarm in a thousand"
        raise InvalidArgument("alpha", alpha, f"at least {least:.3g} and below 1", remedy)
    known = None if members is None else np.asarray(members).astype(bool).reshape(-1)
    if known is not None and (known.size != scores.size or known.all() or not known.any()):
        wanted = f"{scores.size} of them, some true and some not"
        raise InvalidArgument("members", f"{known.size} marks", wanted, "mark each target")
    return Tracing(scores, np.minimum(chances, 1.0), score, null, float(alpha), known)


def _pull(q: Doubles, p: Doubles, variances: Doubles) -> Doubles:
    """What an attribute adds to the score, for each unit that a person is above the population."""
    enough = variances > SMALLEST
    return np.where(enough, (q - p) / np.where(enough, variances, 1.0), 0.0)


def _tail(scores: Doubles, p: Doubles, pull: Doubles) -> Doubles:
    """P(T ≥ t) ≤ e^(K(λ) − λ·t) for every λ ≥ 0, where K is the logarithm of the generating function of T."""
    spread = float(np.sqrt((p * (1 - p) * pull**2).sum()))
    if spread == 0:
        return np.ones(scores.size)
    best, low, high = np.zeros(scores.size), np.log1p(-np.minimum(p, 1 - 1e-16)), np.log(np.maximum(p, 1e-300))
    for step in np.geomspace(0.3, 12, 24):
        rate = step / spread
        best = np.minimum(best, float((np.logaddexp(low, high + rate * pull) - rate * pull * p).sum()) - rate * scores)
    return np.asarray(np.exp(best), np.float64)


def _rows(argument: str, values: Any) -> Doubles:
    listed = np.asarray(values.toarray() if hasattr(values, "toarray") else values, np.float64)
    if listed.ndim != 2 or not listed.size:
        raise InvalidArgument(argument, f"of shape {listed.shape}", "a table, one row a person", "give rows of numbers")
    return listed
