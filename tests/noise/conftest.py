"""Fixtures of the noise tests."""

import pytest
from hypothesis import settings
from tests.noise.spies import Watched

from discreet.noise import exponential, gaussian, laplace

# A busy machine may take long over an example; that is no failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """Every uniform that is handed to ball arithmetic while the test runs, in order."""
    made: list[Watched] = []
    watched = type("WatchedHere", (Watched,), {"made": made})
    for module in (exponential, gaussian, laplace):
        monkeypatch.setattr(module, "Uniform", watched)
    return made
