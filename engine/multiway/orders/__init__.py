"""Join orders of multi-way window joins (P3 4 and 5, P4 5.3): costs and choice."""
