"""Functions of one row: their types, ranges, and how engines compute them, total on every input."""
