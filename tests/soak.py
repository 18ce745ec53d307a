"""How long campaigns are: `make test` runs a share of each, `make soak` (DISCREET_SOAK=1) the whole of it."""

import os

SOAK = bool(os.environ.get("DISCREET_SOAK"))


def whole_or_share(whole: int, share: int) -> int:
    """How many of something a test does: all in `make soak`, a share of them every day."""
    return whole if SOAK else share


def third(whole: int) -> int:
    """All in `make soak`, a third every day: of examples that are drawn anew in each run."""
    return whole_or_share(whole, -(-whole // 3))
