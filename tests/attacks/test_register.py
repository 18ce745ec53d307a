"""Every class of bug is attacked, and every attack fails where its fault is planted: none of them is idle."""

from importlib import import_module
from pathlib import Path

import pytest
from tests.attacks.register import ATTACKS, CLASSES, Attack, Fault, planted

for file in sorted(Path(__file__).parent.glob("test_*.py")):
    if file.name != Path(__file__).name:
        import_module(f"tests.attacks.{file.stem}")

PAIRS = [(attack, fault) for attack in ATTACKS for fault in attack.finds]
PASSED: set[int] = set()
"""Attacks that ours has withstood in this process."""
NAMED = type(pytest.param())


def named(attack: Attack, fault: Fault) -> str:
    """Attacks on Spark say so, and run in the process that has one."""
    on_spark = " on spark" if "spark" in attack.check.__module__ else ""
    return f"{fault.__name__} by {attack.name}{on_spark}"


def is_a_case(attack: Attack) -> bool:
    """Whether what the attack is given is among the cases of its test, so that the test itself is the honest run."""
    left = dict(attack.given)
    for mark in getattr(attack.check, "pytestmark", ()):
        if mark.name == "parametrize":
            names, cases = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
            cases = [case.values if isinstance(case, NAMED) else case if len(names) > 1 else (case,) for case in cases]
            given = [left.pop(name, None) for name in names]
            if not any(repr(given) == repr([*case]) for case in cases):
                return False
    return not left


HEAD = "## Bugs that shipped elsewhere"


def test_every_class_of_bug_is_attacked_and_found() -> None:
    found = {number for attack, _ in PAIRS for number in attack.classes}
    assert found == set(CLASSES) >= set(range(1, 32))
    assert list(CLASSES) == sorted(CLASSES)


@pytest.mark.parametrize(("attack", "fault"), PAIRS, ids=[named(*pair) for pair in PAIRS])
def test_the_attack_passes_ours_and_finds_the_fault(attack: Attack, fault: Fault, tmp_path: Path) -> None:
    if not is_a_case(attack) and id(attack) not in PASSED:
        attack.run(tmp_path / "ours")
        PASSED.add(id(attack))
    with planted(fault), pytest.raises((AssertionError, pytest.fail.Exception)):
        attack.run(tmp_path / "faulty")


def test_the_classes_are_told_as_they_are_tested() -> None:
    text = Path("docs/adversary.md").read_text().partition(HEAD)[2]
    told = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert {int(line[0].strip("| ")): line[1].strip("| ") for line in told if line[0].strip("| ").isdigit()} == CLASSES
