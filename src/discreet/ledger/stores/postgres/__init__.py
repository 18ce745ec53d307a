"""Books on a PostgreSQL server: group commit, pipelined statements, advisory locks."""
