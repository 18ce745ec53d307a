"""Plan to one statement: selection, layout, dialects, names of ours alone, and how its result is read."""
