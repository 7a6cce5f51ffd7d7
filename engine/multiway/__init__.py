"""Multi-way window joins on any predicate (P3)."""
