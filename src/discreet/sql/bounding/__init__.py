"""Contribution bounds in whole numbers: clipping norms, the sums that measures need, declared values."""
