"""SQL text to plan: what is not understood is refused, with what to write instead."""
