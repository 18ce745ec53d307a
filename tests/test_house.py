"""The shape of the house: who imports whom, what is public, how long files are."""

import ast
import re
import subprocess
import sys
from functools import cache
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
    "charging": {"core", "noise", "accounting", "ledger", "sql", "engines"},
    "synthesis": {"core", "noise", "accounting", "mechanisms", "sql", "synopses", "engines", "charging"},
    "estimation": {"core", "noise", "accounting", "robust", "sql", "engines", "charging"},
    "session": {"core", "noise", "accounting", "mechanisms", "robust", "sql", "engines", "ledger", "charging"}
    | {"synthesis", "estimation"},
    "app": {"core", "sql", "engines", "ledger", "charging", "session", "samples", "synthesis", "adversary"},
}
# The adversary may use anything of ours, and only the app may use it.
ALLOWED["adversary"] = set(ALLOWED) - {"app"}
# Slow to import: only inside the functions that need them.
HEAVY = {"scipy", "pandas", "altair", "pyarrow", "dp_accounting"}


def part_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports_of(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_parts_import_only_what_stands_below_them() -> None:
    for file in FILES:
        part = part_of(file)
        if part != "__init__":
            used = {name.split(".")[1] for name in imports_of(parsed(file)) if name.startswith("discreet.")}
            assert used - {part} <= ALLOWED[part], name_of(file)


# Sub-rooms of one part, each below those that come later: what stands further left may be imported, nothing else.
ROOMS = {
    "accounting": ("pld",),
    "adversary": (
        *("auditing", "reconstruction", "linkage", "differencing", "membership"),
        *("lower_bounds", "session_audit"),
    ),
    "app": ("config", "output", "commands"),
    "core": ("display",),
    "engines": ("duckdb", "postgres", "spark", "warehouses"),
    "ledger": ("stores",),
    "mechanisms": ("quantiles",),
    "noise": ("neighbour_sets",),
    "robust": ("sandbox", "aggregation"),
    "sql": ("functions", "bounding", "statement", "analysis", "parsing", "measuring", "answers"),
    "synopses": ("queries",),
}
LARGEST_ROOM = 18
"""Files in one folder, without its `__init__.py`."""


def module_of(file: Path) -> str:
    """The dotted name of a file, without the package's."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file) for file in FILES}


@cache
def imported_modules(file: Path) -> frozenset[str]:
    """The modules of ours that a file imports when it runs, at any place; not those for annotations alone."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = {name.removeprefix("discreet.") for name in imports_of(tree) if name.startswith("discreet.")}
    return frozenset(names & MODULES)


def test_rooms_import_only_what_stands_below_them() -> None:
    rooms = {(part, room): place for part, listed in ROOMS.items() for place, room in enumerate(listed)}
    folders = {file.relative_to(SOURCE).parts[:2] for file in FILES if len(file.relative_to(SOURCE).parts) > 2}
    assert folders == rooms.keys()
    for file in FILES:
        own = file.relative_to(SOURCE).parts[:2]
        for name in imported_modules(file):
            other = tuple(name.split(".")[:2])
            if own in rooms and other in rooms and own[0] == other[0]:
                assert rooms[other] <= rooms[own], f"{name_of(file)} imports {name}"


def test_rooms_are_small_enough_to_be_seen_at_once() -> None:
    for folder in {file.parent for file in FILES}:
        assert len([*folder.glob("*.py")]) - 1 <= LARGEST_ROOM, folder


def test_no_module_imports_itself_by_way_of_others() -> None:
    below = {module_of(file): imported_modules(file) for file in FILES if file.name != "__init__.py"}
    while leaves := {name for name, used in below.items() if not used & below.keys()}:
        below = {name: used for name, used in below.items() if name not in leaves}
    assert not below, f"these import each other: {sorted(below)}"


def test_files_stay_short_and_open_with_a_docstring() -> None:
    for file in FILES:
        assert file.read_text().count("\n") <= 450, name_of(file)
        assert ast.get_docstring(parsed(file)), name_of(file)


def test_importing_discreet_loads_nothing_heavy() -> None:
    program = "import sys, discreet, discreet.mechanisms; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_public_names_are_these() -> None:
    assert discreet.__all__ == [
        "SQL",
        "ZCDP",
        "Answer",
        "AnswerFailed",
        "ApproxDP",
        "Bounds",
        "BudgetExceeded",
        "Categories",
        "Certificate",
        "Csv",
        "DiscreetError",
        "EngineUnavailable",
        "EntropyFailure",
        "Estimate",
        "Estimation",
        "InvalidArgument",
        "LedgerDamaged",
        "LedgerUnavailable",
        "Mechanism",
        "MechanismRelease",
        "NotAccountable",
        "Private",
        "PureDP",
        "Question",
        "Quote",
        "Release",
        "RenyiDP",
        "Row",
        "RunMechanism",
        "Session",
        "StreamEnded",
        "Synthesis",
        "SyntheticRows",
        "Unsupported",
        "User",
        "accounting",
        "adversary",
        "connect",
        "ledger",
        "mechanisms",
        "noise",
        "robust",
        "samples",
        "synopses",
        "verify",
    ]
    assert all(getattr(discreet, name) is not None for name in discreet.__all__)
    assert {*dir(discreet)} == {*discreet.__all__, "__all__", "__doc__", "__name__", "__version__"}
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


SETTERS = {("core/events.py", "_set"), ("mechanisms/quantiles/mechanism.py", "_check")}
"""Where frozen dataclasses set fields of the object that is being made."""


def patches_in(tree: ast.AST) -> list[str]:
    """What replaces attributes of classes or modules, or methods of objects that others may hold."""
    shared = {alias.asname or alias.name.split(".")[0] for node in imported(tree) for alias in node.names}
    shared |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} | {"cls"}
    for node in ast.walk(tree):  # another name for a class or a module is no way around
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name | ast.Attribute):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if root_of(node.value) in shared:
                shared |= {target.id for target in targets if isinstance(target, ast.Name)}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and root_of(node.value) in {*functions, "lambda"}:
            replaced = [target for target in node.targets if isinstance(target, ast.Attribute)]
            found += [ast.unparse(target) for target in replaced if ast.unparse(target.value) != "self"]
        changed = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        if changed and isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if not own and root_of(node.value) in {*shared, None}:
                found.append(ast.unparse(node))
        if changed and isinstance(node, ast.Subscript):
            inside = ast.unparse(node.value)
            if inside in ("sys.modules", "os.environ") or "__dict__" in inside or inside.startswith("vars("):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("setattr", "delattr", "type.__setattr__") or called.split(".")[0] in ("mock", "patch"):
                found.append(ast.unparse(node))
            if called == "object.__setattr__" and ast.unparse(node.args[0]) != "self":
                found.append(ast.unparse(node))
    return found


def imported(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def root_of(node: ast.AST) -> str | None:
    """The name that an attribute hangs on; None for what is called there, as type(x)."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return "lambda" if isinstance(node, ast.Lambda) else node.id if isinstance(node, ast.Name) else None


def test_nothing_of_the_process_is_replaced_while_it_runs() -> None:
    """A class or a module is everybody's: who replaces a part of it changes what other sessions do."""
    for file in FILES:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (name_of(file), node.name) in SETTERS:
                node.body = [ast.Pass()]
        assert patches_in(tree) == [], name_of(file)
        assert not any("mock" in name for name in imports_of(tree)), name_of(file)


@pytest.mark.parametrize(
    "text",
    [
        "from a import Kind\nKind.release = stop",
        "from a import Kind\nkind: Any = Kind\nkind.release = stop",
        "class Kind: ...\nother = Kind\ndel other.name",
        "import a.b\na.b.name = 1",
        "type(engine).name = 1",
        "def run(): ...\nengine.run = run",
        "engine.run = lambda: 1",
        "setattr(engine, name, run)",
        "import sys\nsys.modules['a'] = b",
        "Kind.__dict__['a'] = b",
        "object.__setattr__(other, 'a', 1)",
        "class Kind:\n    @classmethod\n    def change(cls): cls.a = 1",
    ],
)
def test_what_is_replaced_is_noticed(text: str) -> None:
    assert patches_in(ast.parse(text))
    assert not patches_in(ast.parse("class Kind:\n    def __init__(self): self.run = 1\nmade = Kind()\nmade.text = 1"))


MARKUP = re.compile(r"</?[a-z!][a-z0-9]*(\s[^<>]*)?/?>")
"""A tag of HTML or SVG."""


def texts_in(tree: ast.AST) -> set[str]:
    """All texts of a module but its docstrings."""
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    plain = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (told | inside)
    }
    formatted = {
        "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    }
    return plain | formatted


def calls_in(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_tags_are_found_in_texts() -> None:
    tree = ast.parse('"""<b>"""\nx = f"<p>{y}</p>"\nz = "<lambda>"\nw = f\'<a href="{y}">\'')
    assert [bool(MARKUP.search(text)) for text in sorted(texts_in(tree))] == [True, True, True]


def test_only_one_module_writes_markup_and_one_each_prints() -> None:
    """Whatever another module wants shown is a text, and is escaped where it is put into a page or on a terminal."""
    for file in FILES:
        tree, name = parsed(file), name_of(file)
        calls = calls_in(tree)
        if name != "core/display/html.py":
            assert not [text for text in texts_in(tree) if MARKUP.search(text) and text != "<lambda>"], name
            assert not {"Html", "markup.Html"} & calls, name
            assert not {"html", "html.escape"} & imports_of(tree), name
        if name != "app/output/printing.py":
            assert not {"typer.echo", "typer.secho", "click.echo", "print"} & calls, name
        if name != "app/output/terminal.py":
            assert not {"Text", "Text.from_markup"} & calls, name
