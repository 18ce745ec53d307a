"""Private quantiles: the exponential mechanism over ranks, sampled exactly on a line of candidates."""
