"""Tables on a PostgreSQL server: what they reach, their dialect, and the engine."""
