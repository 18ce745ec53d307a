"""Attacks by differences: values of one person read off aggregates, and cells read off suppressed tables."""
