"""The example that `make demo` runs tells its whole story."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
def test_the_demo_answers_refuses_and_audits(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "health_survey.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("price, known beforehand") == 3
    assert "refused: the charge" in said
    assert "no violation found" in said
    assert "VIOLATION" in said
