"""Noise of a neighbour set: shells of how many records away a number is, on a line and in a plane."""
