"""Noise for a plan: the planner, the measurement, the search for clipping norms, quantiles, modes."""
