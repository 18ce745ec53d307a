"""Membership inference: who is in the data, from means, rows and marked copies."""
