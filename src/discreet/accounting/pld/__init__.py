"""Privacy loss distributions: from the pair of laws that dominates an event to a tight (ε, δ) of many events."""
