"""Warehouses through ibis: one engine, one dialect, and a record of words for each."""
