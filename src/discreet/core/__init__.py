"""The vocabulary: units, losses, events, exact numbers, errors. Pure; imports nothing else of this package."""
