"""What commands print: tables, bars, pages, progress and verdicts."""
