"""Where books are kept: the contract of a store, its tables step by step, and which runs are alive."""
