"""Names of tables at the end of a question that is being typed.

>>> completed("SELECT COUNT(*) FROM v", Path("/nowhere"), names=["visits", "cities"])
['SELECT COUNT(*) FROM visits']
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["completed"]


def completed(incomplete: str, folder: Path, names: Iterable[str] | None = None) -> list[str]:
    """The text with its last word completed to each table that begins like it."""
    begun = re.search(r"\w*$", incomplete)
    word = begun.group() if begun else ""
    before = incomplete[: len(incomplete) - len(word)]
    known = _tables(folder) if names is None else names
    return [before + name for name in known if name.lower().startswith(word.lower())]


def _tables(folder: Path) -> list[str]:
    """What the nearest discreet.toml calls its tables; nothing if there is none that can be read."""
    for place in (folder, *folder.parents):
        try:
            tables = tomllib.loads((place / "discreet.toml").read_text(encoding="utf-8")).get("tables", {})
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            return []
        return list(tables) if isinstance(tables, dict) else []
    return []
