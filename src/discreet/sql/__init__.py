"""From SQL text to a plan, its bounds and its price."""
