"""Window harvesting (P4): which segments of the join windows are worth probing."""
