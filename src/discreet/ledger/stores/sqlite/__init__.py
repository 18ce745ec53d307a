"""Books in a SQLite file, with a write lock that lets writers take turns."""
