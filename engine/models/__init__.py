"""Arrival models: what a stream's past says of what its tuples will match (P5 2)."""
