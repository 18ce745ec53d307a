"""The meeting point: `connect` makes a catalog and a session; a session prices and answers questions."""
