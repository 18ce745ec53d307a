"""Linear queries over a domain: blocks, factors, workloads."""
