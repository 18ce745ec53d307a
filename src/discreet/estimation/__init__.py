"""Any function of private rows: run on disjoint blocks of people, its answers aggregated, charged as any question.

What is asked for and what it costs is in `request.py`, from declared facts alone; what looks at rows, and what becomes
of the answers, is in `result.py`.
"""
