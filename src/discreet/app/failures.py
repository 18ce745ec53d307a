"""What is said when something does not work: one message, one exit code, nothing from the data.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | something failed: the engine, the books, the file system, a check |
| 2 | the question, an argument or the configuration must be changed |
| 3 | the budget does not allow it |

>>> from discreet.core.errors import InvalidArgument
>>> Failure.of(InvalidArgument("epsilon", "-1", "above 0", "give a positive epsilon"))
Failure(kind='InvalidArgument', message="epsilon='-1' must be above 0; give a positive epsilon", code=2)
>>> Failure.of(RuntimeError("row 17: Jane Doe")).message
'unexpected RuntimeError; its text is withheld, since it could repeat data'
"""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from discreet.core.display.secrets import redacted
from discreet.core.errors import BudgetExceeded, DiscreetError, InvalidArgument, Unsupported

__all__ = ["FAILED", "REFUSED", "WRONG", "Failure"]

FAILED, WRONG, REFUSED = 1, 2, 3


@dataclass(frozen=True)
class Failure:
    """An error as it is shown."""

    kind: str
    message: str
    code: int

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """How this error is shown."""
        kind = type(error).__name__
        if isinstance(error, BudgetExceeded):
            return cls(kind, f"refused: {error}", REFUSED)
        if isinstance(error, InvalidArgument | Unsupported):
            return cls(kind, str(error), WRONG)
        if isinstance(error, DiscreetError):
            return cls(kind, str(error), FAILED)
        if isinstance(error, OSError) and error.filename is not None:
            return cls(kind, redacted(f"{error.filename}: {error.strerror}"), FAILED)
        return cls(kind, f"unexpected {kind}{_place(error)}; its text is withheld, since it could repeat data", FAILED)

    def as_record(self) -> dict[str, Any]:
        """The error for JSON."""
        return {"error": asdict(self)}


def _place(error: Exception) -> str:
    """Where in the program it happened; nothing of what it was about."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
