"""The library's own adversary: it imports anything, and nothing imports it.

`audit` runs any mechanism and gives a lower bound on its ε at a stated confidence; `Comparison` compares two output
distributions exactly where they can be written down; `measured_sensitivity` measures how far a function moves between
neighbours.

>>> from discreet.core.losses import PureDP
>>> found = audit(lambda rows: f"{len(rows)} rows", [1, 2], [1, 2, 3], samples=2000)
>>> found.violates(PureDP(1)), found.event
(True, "output = '2 rows'")
"""

from discreet.adversary.auditor import Audit, audit
from discreet.adversary.reachability import Comparison
from discreet.adversary.sensitivity import MeasuredSensitivity, measured_sensitivity

__all__ = ["Audit", "Comparison", "MeasuredSensitivity", "audit", "measured_sensitivity"]
