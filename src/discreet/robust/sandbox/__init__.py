"""Functions that nobody trusts, run in processes that are confined before any of their code is loaded."""
