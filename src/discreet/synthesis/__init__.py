"""Synthetic rows from a session: what may be asked for, what it costs, how it is made and how good it is.

columns     values and bins of columns, from what is declared
questions   workloads from SQL
methods     which mechanism, by size and by name
check       how far off the rows are, found out privately
request     everything decided before the data is touched
result      what the ledger stored, and the rows made of it
report      a page that shows how good they are
"""
