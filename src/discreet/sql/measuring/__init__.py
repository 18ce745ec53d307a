"""Noise for a plan: the planner, the measurement and its run, the search for clipping norms, quantiles, modes."""
