"""Where tables live: engines behind one interface."""
