"""Questions about a real health survey, answered privately: price, answer, budget, replay, refusal, certificate, audit.

The table is the RAND Health Insurance Experiment: 20,190 person-years of 5,912 people. The unit of privacy is a person
with all their years; neighbours differ by one person being there or not.
"""

from __future__ import annotations

import numpy as np

import discreet as dc
from discreet.adversary import Audit, audit
from discreet.charging.certificate import verify
from discreet.mechanisms import Laplace
from discreet.samples import rand_hie

QUESTIONS = [
    ("How many person-years at each site?", "SELECT site, COUNT(*) AS n FROM survey GROUP BY site"),
    (
        "What does health cost, and how many visits does it take?",
        "SELECT health, AVG(spending) AS cost, AVG(doctor_visits) AS visits FROM survey GROUP BY health ORDER BY cost",
    ),
    (
        "And by age? The decades are not declared: only those that many people share may show.",
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM survey GROUP BY 1 ORDER BY 1",
    ),
]


def main() -> None:
    budget = dc.ApproxDP(2, "1e-6")
    session = dc.connect(
        rand_hie(),
        table="survey",
        unit=dc.User("person"),
        budget=budget,
        bounds={"spending": (0, 2000), "doctor_visits": (0, 30)},
        values={"site": [1, 2, 3, 4, 5, 6], "health": ["excellent", "good", "fair", "poor"]},
    )
    print(f"20,190 rows of 5,912 people. Unit: {dc.User('person')}. Budget for ever: {budget}.\n")
    for words, text in QUESTIONS:
        print(f"{words}\n  {text}")
        quote = session.price(text, epsilon="0.5")
        print(f"  price, known beforehand: {quote.loss} ({quote.plan})")
        answer = session.sql(text, epsilon="0.5")
        print(indented(str(answer)))
        for name, spans in answer.intervals(0.95).items():
            widths = sorted((high - low) / 2 for low, high in spans)
            print(f"  {name}: 95 % intervals of ± {widths[len(widths) // 2]:,.1f} or so")
        print(f"  spent {session.spent}\n")

    words, text = QUESTIONS[0]
    again = session.sql(text, epsilon="0.5")
    print(f"Asked again: the same answer ({again.rows[0][1]:,} at site 1), nothing more spent: {session.spent}")
    print(f"Its certificate, checked offline from its events: {verify(again.certificate).loss}\n")

    print("One question too many:")
    try:
        session.sql(text, epsilon=10)
    except dc.BudgetExceeded as refusal:
        print(f"  refused: {refusal}\n")
    session.close()

    print("An auditor who trusts nobody compares counts with and without one person, a million times each:")
    honest = audited("0.5")
    print(f"  ours, sold as ε = 0.5:        at least ε = {honest.epsilon:.3f}  → {verdict(honest, '0.5')}")
    cheat = audited("1")
    print(f"  half the noise, sold as 0.5:  at least ε = {cheat.epsilon:.3f}  → {verdict(cheat, '0.5')}")


def audited(epsilon: str) -> Audit:
    def batch(count: int, runs: int) -> object:
        scale = Laplace.for_epsilon(epsilon).scale
        return Laplace(scale, 1, dimension=runs).release(np.full(runs, count)).values

    return audit(None, 1000, 1001, samples=1_000_000, batch=batch)


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def verdict(finding: Audit, claimed: str) -> str:
    return "VIOLATION" if finding.violates(dc.PureDP(claimed)) else "no violation found"


if __name__ == "__main__":
    main()
