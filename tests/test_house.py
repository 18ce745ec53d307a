"""The shape of the house: who imports whom, what is public, how long files are."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# What each part may import besides itself.
ALLOWED = {
    "core": set(),
    "noise": {"core"},
    "accounting": {"core"},
    "mechanisms": {"core", "noise", "accounting"},
    "ledger": {"core", "noise", "accounting"},
    "samples": set(),
    "sql": {"core", "noise", "accounting", "mechanisms"},
    "synopses": {"core", "noise", "accounting", "mechanisms"},
    "robust": {"core", "noise", "accounting", "mechanisms"},
    "engines": {"core", "sql"},
    "certificate": {"core", "accounting"},
    "custody": {"core", "ledger", "certificate"},
    "allowance": {"core", "sql", "ledger"},
    "asked": {"core", "sql"},
    "quote": {"core", "sql"},
    "purchase": {"core", "ledger", "allowance", "certificate", "custody"},
    "synthesis": {"core", "noise", "accounting", "mechanisms", "sql", "synopses", "engines", "purchase"},
    "estimation": {"core", "noise", "robust", "sql", "engines", "purchase"},
    "session": {"core", "noise", "accounting", "sql", "engines", "ledger", "allowance", "custody"}
    | {"asked", "purchase", "quote", "synthesis", "estimation", "robust"},
    "connection": {"core", "sql", "engines", "ledger", "session"},
    "app": {"core", "sql", "engines", "ledger", "allowance", "certificate", "custody", "session", "connection"}
    | {"samples", "synthesis", "adversary"},
}
# The adversary may use anything of ours, and only the app may use it.
ALLOWED["adversary"] = set(ALLOWED) - {"app"}
# Slow to import: only inside the functions that need them.
HEAVY = {"scipy", "pandas", "altair", "pyarrow", "dp_accounting"}


def part_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def imports_of(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("file", [f for f in FILES if part_of(f) != "__init__"], ids=name_of)
def test_parts_import_only_what_stands_below_them(file: Path) -> None:
    part = part_of(file)
    used = {name.split(".")[1] for name in imports_of(ast.parse(file.read_text())) if name.startswith("discreet.")}
    assert used - {part} <= ALLOWED[part]


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_stay_short_and_open_with_a_docstring(file: Path) -> None:
    text = file.read_text()
    assert text.count("\n") <= 450
    assert ast.get_docstring(ast.parse(text))


def test_importing_discreet_loads_nothing_heavy() -> None:
    program = "import sys, discreet, discreet.mechanisms; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_public_names_are_these() -> None:
    assert discreet.__all__ == [
        "ZCDP",
        "AnswerFailed",
        "ApproxDP",
        "Bounds",
        "BudgetExceeded",
        "Categories",
        "DiscreetError",
        "Edge",
        "EntropyFailure",
        "Event",
        "InvalidArgument",
        "Mechanism",
        "Node",
        "NotAccountable",
        "Private",
        "PureDP",
        "Release",
        "RenyiDP",
        "Row",
        "Unsupported",
        "User",
        "connect",
    ]
    from discreet import adversary, mechanisms, noise, robust, synopses

    assert mechanisms.__all__ == [
        "Exponential",
        "Gaussian",
        "Laplace",
        "NeighbourSet",
        "NoisyMax",
        "PermuteAndFlip",
        "Quantile",
        "Quantiles",
        "RandomizedResponse",
        "SparseVector",
        "Staircase",
    ]
    assert {"discrete_laplace", "discrete_gaussian"} <= set(noise.__all__)
    assert {"MWEM", "Boosting", "Domain", "Projection", "SmallDatabase", "Workload", "load"} <= set(synopses.__all__)
    assert robust.__all__ == [
        "Agreement",
        "Centre",
        "Declared",
        "InterquartileRange",
        "Limits",
        "MedianDeviation",
        "OnLine",
        "OrderStatistic",
        "ProposeTestRelease",
        "RawData",
        "SampleAndAggregate",
        "Scale",
        "SignificantFeatures",
        "Slope",
        "SmoothSensitivity",
        "StabilityTest",
        "StableRelease",
        "SubsampledRelease",
        "TrimmedMean",
        "Unstable",
        "Vote",
        "local_sensitivity",
        "mode",
    ]
    assert {"audit", "Audit"} <= set(adversary.__all__)


@pytest.mark.parametrize("page", [Path("README.md"), *sorted(Path("docs").glob("*.md"))], ids=str)
def test_examples_render_as_code(page: Path) -> None:
    text = page.read_text()
    blocks = re.findall(r"^```pycon\n(>>> .*?)\n\n```$", text, re.DOTALL | re.MULTILINE)
    assert text.count("\n>>> ") == sum(f"\n{block}".count("\n>>> ") for block in blocks)
    assert not any("```" in block for block in blocks)


def test_every_public_name_is_documented() -> None:
    from discreet import accounting, adversary, mechanisms, noise, robust, synopses

    words = "\n".join(page.read_text() for page in [Path("README.md"), *Path("docs").glob("*.md")])
    for module in (discreet, noise, accounting, mechanisms, synopses, robust, adversary):
        missing = [name for name in module.__all__ if name not in words]
        assert not missing, f"{module.__name__}: {missing}"
