"""Audits of a session: its questions replayed on made-up neighbouring tables; no private row is read."""
