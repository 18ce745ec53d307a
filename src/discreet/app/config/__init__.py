"""What `discreet.toml` says: settings, registered tables, declared facts, and where output may go."""
