"""Device code of multi-way joins (P3, P4)."""
