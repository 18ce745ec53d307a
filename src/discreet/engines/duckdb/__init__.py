"""DuckDB in this process: files, frames and their types, CSV files parsed once, and the engine itself."""
