"""Audits of one mechanism, ours or foreign: lower bounds on ε from runs, and exact comparison where laws are known."""
