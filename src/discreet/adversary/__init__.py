"""Attacks on released output: the library's own adversary."""
from discreet.adversary.auditor import Audit, audit
__all__=["Audit","audit"]
