"""Questions about a real health survey, answered privately: price, answer, budget, refusal, audit.

The table is the RAND Health Insurance Experiment: 20,190 person-years of 5,912 people. The unit of privacy is a person
with all their years; neighbours differ by one person being there or not.
"""

from __future__ import annotations

import numpy as np

import discreet as dc
from discreet.accounting import Filter
from discreet.adversary import audit
from discreet.mechanisms import Gaussian, Laplace, NoisyMax
from discreet.samples import rand_hie


def main() -> None:
    survey = rand_hie()
    people, first_rows = np.unique(survey["person"], return_index=True)
    budget = Filter(dc.ApproxDP(2, "1e-6"))
    print(f"{people.size:,} people, {survey['person'].size:,} rows. Unit: {dc.User('person')}.")
    print("Budget for ever: ε = 2, δ = 1e-6. Everything below is paid from it before the data is touched.\n")

    print("1. How many people at each site? A person is at one site, so the six counts move by 1 in all.")
    counts = Laplace.for_epsilon("0.5", sensitivity=1, dimension=6)
    budget.charge(counts.events[0])
    answer = counts.release(np.bincount(survey["site"][first_rows], minlength=7)[1:])
    for site, (count, (low, high)) in enumerate(zip(answer.values, answer.intervals(0.95), strict=True), start=1):
        print(f"   site {site}: {count:>6,}   95 % interval {low:,.0f} … {high:,.0f}")
    report(budget)

    print("2. Mean yearly spending, each person's years averaged and clipped to $2,000, from one noisy sum and count.")
    bounds = dc.Bounds(0, 2000)
    totals = np.bincount(np.searchsorted(people, survey["person"]), survey["spending"])
    means = bounds.clip(totals / np.unique(survey["person"], return_counts=True)[1])
    # (clipped sum / 2000, count): a person moves each coordinate by at most 1, the vector by √2.
    pair = Gaussian.for_zcdp("0.005", squared_sensitivity=2, dimension=2, real=True)
    budget.charge(pair.events[0])
    noisy_sum, noisy_count = pair.release(np.array([means.sum() / 2000, float(people.size)])).values
    print(f"   ${2000 * noisy_sum / noisy_count:,.2f} a year")
    report(budget)

    print("3. Which ten-year age band has the most people? Only the winner leaves.")
    bands = np.bincount(survey["age"][first_rows] // 10, minlength=7)
    oldest = NoisyMax("0.2", monotonic=True)
    budget.charge(oldest.events[0])
    winner = oldest.release(bands).values
    print(f"   {10 * winner} to {10 * winner + 9} years")
    report(budget)

    print("4. One question too many.")
    try:
        budget.charge(Laplace.for_epsilon(2).events[0])
    except dc.BudgetExceeded as refusal:
        print(f"   refused: {refusal}\n")

    print("5. An auditor who trusts nobody compares answers with and without one person, 200,000 times each.")
    honest = audit(Laplace.for_epsilon("0.5"), 1000, 1001, samples=200_000)
    print(f"   ours, sold as ε = 0.5:        at least ε = {honest.epsilon:.3f}  → {verdict(honest, '0.5')}")
    cheat = audit(Laplace.for_epsilon(1), 1000, 1001, samples=200_000)
    print(f"   half the noise, sold as 0.5:  at least ε = {cheat.epsilon:.3f}  → {verdict(cheat, '0.5')}")


def report(budget: Filter) -> None:
    print(f"   spent {budget.spent}, remaining {budget.remaining}\n")


def verdict(finding: object, claimed: str) -> str:
    return "VIOLATION" if finding.violates(dc.PureDP(claimed)) else "no violation found"


if __name__ == "__main__":
    main()
