"""Tables of Apache Spark: sessions, settings, their dialect, and the engine."""
