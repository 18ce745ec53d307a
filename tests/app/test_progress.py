"""A sign of life is shown to people at a terminal, and to nobody else."""

import io
from threading import Event

import pytest
from rich.console import Console

from discreet.app.output import terminal
from discreet.app.output.progress import waiting


def screen(monkeypatch: pytest.MonkeyPatch, *, attended: bool) -> io.StringIO:
    out = io.StringIO()
    monkeypatch.setattr(terminal, "console", lambda errors: Console(file=out, force_terminal=attended, width=80))
    return out


def test_nothing_is_written_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    out = screen(monkeypatch, attended=False)
    with waiting(lambda: 0.5):
        pass
    assert out.getvalue() == ""


def test_whoever_counts_steps_is_asked_how_many_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    out = screen(monkeypatch, attended=True)
    asked = Event()

    def progress() -> float | None:
        asked.set()
        return 0.5

    with waiting(progress):
        assert asked.wait(timeout=900)
    assert "asking" in out.getvalue()


@pytest.mark.parametrize("progress", [None, lambda: None])
def test_what_cannot_be_counted_is_waited_for_all_the_same(monkeypatch: pytest.MonkeyPatch, progress: object) -> None:
    out = screen(monkeypatch, attended=True)
    with waiting(progress):
        pass
    assert "asking" in out.getvalue()


def test_an_error_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    screen(monkeypatch, attended=True)
    with pytest.raises(ZeroDivisionError), waiting(None):
        raise ZeroDivisionError
