"""Where this user's programs keep what lasts.

>>> from unittest.mock import patch
>>> with patch.dict(os.environ, XDG_DATA_HOME="/home/ann/data"):
...     print(data_folder())
/home/ann/data/discreet
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_folder"]


def data_folder() -> Path:
    """Where this user's programs keep what lasts on this system, and ours within it.

    One that lies where earlier versions made it, alike on all systems, is still the one: budgets whose books are lost
    would begin anew.
    """
    earlier = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "discreet"
    if os.path.isdir(earlier):
        return earlier
    from platformdirs import user_data_path

    return user_data_path("discreet")
