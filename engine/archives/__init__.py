"""Archived streams: Parquet and CSV files read as tuples in arrival order."""
