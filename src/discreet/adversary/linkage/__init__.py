"""Attacks by linkage: people found in tables without names."""
