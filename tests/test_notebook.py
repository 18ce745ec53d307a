"""The example notebook runs in a real kernel from the first cell to the last, and shows what it tells."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "health_survey.ipynb"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The code cells with their outputs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(variable, str(tmp_path_factory.mktemp(variable.lower())))
        NotebookClient(notebook, timeout=300).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(story: list[Any], start: str, kind: str, place: int = 0) -> str:
    """What the cell that starts with this text shows; `place` tells those of one text apart."""
    cell = [cell for cell in story if cell.source.startswith(start)][place]
    found = [out.data[kind] for out in cell.outputs if kind in out.get("data", {})]
    found += [out.text for out in cell.outputs if kind == "text/plain" and out.output_type == "stream"]
    return "".join(found)


def test_it_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if "outputs" in cell)
    assert NOTEBOOK.stat().st_size < 10_000


def test_prices_and_answers_come_as_tables(story: list[Any]) -> None:
    assert "within what is left" in shown(story, "question", "text/html")
    assert "within what is left" in shown(story, "at_sites", "text/html")
    answer = shown(story, "answer = ", "text/html")
    assert all(word in answer for word in ("excellent", "person-level", "Certificate"))
    assert "n low" in shown(story, "answer.to_pandas", "text/html")


def test_plots_are_pictures(story: list[Any]) -> None:
    for start in ("answer.plot()", "text = "):
        assert shown(story, start, "image/svg+xml").startswith("<svg")


def test_the_budget_goes_down_and_refuses_in_the_end(story: list[Any]) -> None:
    assert ">0.0 % used" in shown(story, "session = ", "text/html")
    after = [cell for cell in story if cell.source == "session"]
    assert ">0.0 % used" not in after[0].outputs[0].data["text/html"]
    assert "exceeds the remaining budget" in shown(story, "try", "text/plain")


def test_a_replay_is_free_and_the_certificate_holds(story: list[Any]) -> None:
    assert shown(story, "before", "text/plain") == "(True, True)"
    assert "which follows from the" in shown(story, "print(verify", "text/plain")
