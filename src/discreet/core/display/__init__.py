"""Numbers, columns, markup and texts of others on their way to a person."""
