"""The command `discreet audit mechanism`: what any mechanism really guarantees at most, from running it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from discreet.app.failures import FAILED
from discreet.app.options import Json
from discreet.app.output.printing import say

if TYPE_CHECKING:
    from discreet.adversary.auditing.auditor import Audit

__all__ = ["mechanism"]

WITH_PROGRAM, WITH_PYTHON = 20_000, 100_000
"""Runs on each data set by default."""
FIRST, TRIED = 4, 5
"""Pairs of data sets, and runs on each, that tell whether a mechanism does anything but raise."""


def mechanism(
    target: Annotated[
        str | None, typer.Argument(help="What to run: module:function, or module:Class.", metavar="MODULE:NAME")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="Or a program: reads one line of JSON for each run, writes one line.", metavar="SHELL"),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An argument of it, such as epsilon=1.", metavar="NAME=JSON")
    ] = None,
    d: Annotated[str | None, typer.Option("--d", help="One data set.", metavar="JSON")] = None,
    d_prime: Annotated[str | None, typer.Option("--d-prime", help="A neighbour of it.", metavar="JSON")] = None,
    domain: Annotated[
        str | None, typer.Option(help="Or a range of numbers, whose ends make neighbours.", metavar="LOW:HIGH")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="With --domain: data sets are so many numbers.")] = None,
    neighbours: Annotated[str, typer.Option(help="With --rows: replace or add_remove.")] = "replace",
    odd: Annotated[bool, typer.Option("--odd", help="With --domain: NaN and infinities too.")] = False,
    epsilon: Annotated[str | None, typer.Option("--epsilon", "-e", help="What it claims.", metavar="NUMBER")] = None,
    delta: Annotated[str | None, typer.Option(help="The δ of the claim.", metavar="NUMBER")] = None,
    rho: Annotated[str | None, typer.Option(help="Or the claim in zCDP.", metavar="NUMBER")] = None,
    samples: Annotated[int | None, typer.Option(min=100, help="Runs on each data set.")] = None,
    confidence: Annotated[str, typer.Option(help="How sure the bound is.", metavar="NUMBER")] = "0.999999999",
    html: Annotated[Path | None, typer.Option(help="Also write a page.", metavar="FILE", dir_okay=False)] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it: .png or .svg.", metavar="FILE")] = None,
    as_json: Json = False,
) -> None:
    """Prove from runs how large the ε of a mechanism is at least; ends with 1 if that refutes its claim."""
    if (target is None) == (command is None):
        raise typer.BadParameter("give MODULE:NAME, or --command with a program")
    if (d is None) != (d_prime is None) or (d is None) == (domain is None):
        raise typer.BadParameter("give --d and --d-prime, or --domain")
    from discreet.adversary.auditing.claims import claimed_between
    from discreet.adversary.auditing.foreign import Program, loaded
    from discreet.adversary.auditing.neighbours import Numbers, worst_pair
    from discreet.app.output.finding import check_files, print_json, telling, write

    check_files({"html": html, "plot": plot}, ())
    options = dict(_option(given) for given in option or ())
    program = None if command is None else Program(command)
    found_in_python = None if target is None else loaded(target, options)
    if domain is None:
        pairs = [(_json("--d", d), _json("--d-prime", d_prime))]
    else:
        low, high = _ends(domain)
        pairs = Numbers(low, high, rows, _relation(neighbours), odd).pairs()
    claim = _claim(epsilon, delta, rho) or (None if target is None else claimed_between(found_in_python, pairs))
    title = f"Audit of {target or command}"
    if found_in_python is not None and (raised := _raised(found_in_python, pairs[:FIRST], always=True)):
        _refused(f"NOTHING: {raised}", title, html, as_json)
    runs = samples or (WITH_PYTHON if program is None else WITH_PROGRAM)
    given: dict[str, Any] = {"samples": runs, "confidence": confidence, "claim": claim, "batch": program}
    with telling("running") as heard:
        found, pair = worst_pair(found_in_python, pairs, progress=heard.hear, **given)
    raised = "" if found_in_python is None else _raised(found_in_python, [pair])
    notes = [f"{raised} Exceptions count as outputs."] if raised else []
    from discreet.adversary.auditing.report import page, record

    if html is not None:
        html.write_text(page(found, title, notes), encoding="utf-8")
    write(found, title, None, plot)
    if as_json:
        print_json(record(found) | {"d": repr(pair[0]), "d_prime": repr(pair[1]), "raised": raised or None})
    else:
        _show(found, pair, notes)
    raise typer.Exit(FAILED if found.refuted else 0)


def _raised(mechanism: Any, pairs: list[Any], *, always: bool = False) -> str:
    """An audit takes an exception for an output; whoever made a mistake wants to know of it."""
    from discreet.adversary.auditing.foreign import runnable

    run = runnable(mechanism)
    raised = []
    tried = [(name, data) for pair in pairs for name, data in zip(("D", "D′"), pair, strict=True)] * TRIED
    for name, data in tried:
        try:
            run(data)
        except Exception as error:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raised.append((name, what))
    if always:
        every = f"it raised in each of {len(tried)} runs, so there is no output to audit; the first said {{}}."
        return every.format(raised[0][1]) if len(raised) == len(tried) else ""
    if not raised:
        return ""
    return f"In {len(raised)} of {len(tried)} more runs it raised, the first time on {raised[0][0]}: {raised[0][1]}."


def _refused(verdict: str, title: str, html: Path | None, as_json: bool) -> NoReturn:
    """Says the same everywhere, and that nothing was audited."""
    from discreet.adversary.auditing.report import document
    from discreet.app.output.finding import print_json
    from discreet.core.display.html import note

    if html is not None:
        html.write_text(document(title, note(verdict, alarm=True)), encoding="utf-8")
    if as_json:
        print_json({"verdict": verdict, "refuted": None, "epsilon": None})
    else:
        say(verdict)
    raise typer.Exit(FAILED)


def _show(found: Audit, pair: tuple[Any, Any], notes: list[str]) -> None:
    from discreet.adversary.auditing.report import bits_words, evidence, power_words
    from discreet.app.output.finding import show

    lines = [("D", _short(pair[0])), ("D′", _short(pair[1])), *evidence(found)]
    lines.append(("runs", f"{found.samples:,} on each data set, confidence 1 − {found.doubt:.3g}"))
    show(found, (), lines, [one for one in (bits_words(found), power_words(found), *notes) if one])


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 70 else f"{text[:69]}…"


def _claim(epsilon: str | None, delta: str | None, rho: str | None) -> Any:
    from discreet.core.losses import ZCDP, ApproxDP, PureDP

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise typer.BadParameter("claim ρ, or ε and δ", param_hint="--rho")
        return ZCDP(rho)
    if epsilon is None:
        if delta is not None:
            raise typer.BadParameter("the δ of a claim needs its ε: add --epsilon", param_hint="--delta")
        return None
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def _json(name: str, text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        remedy = "write for example 1, [1, 2] or '\"a\"'"
        raise typer.BadParameter(f"{text!r} is not JSON; {remedy}", param_hint=name) from None


def _option(given: str) -> tuple[str, Any]:
    name, equals, value = given.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f"{given!r} is not NAME=JSON", param_hint="--option")
    return name, _json("--option", value)


def _ends(domain: str) -> tuple[Any, Any]:
    low, colon, high = domain.partition(":")
    ends = [_json("--domain", part) for part in (low, high)] if colon else []
    if len(ends) != 2 or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        raise typer.BadParameter(f"{domain!r} is not LOW:HIGH, such as 0:100", param_hint="--domain")
    return ends[0], ends[1]


def _relation(given: str) -> Any:
    if given not in ("replace", "add_remove"):
        raise typer.BadParameter(f"{given!r} is not replace or add_remove", param_hint="--neighbours")
    return given
