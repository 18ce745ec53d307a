"""Reconstruction: secret bits and whole records, computed from answers and published tables."""
