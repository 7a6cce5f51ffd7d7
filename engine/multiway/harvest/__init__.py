"""GrubJoin: multi-way window joins within a CPU budget, by window harvesting (P4 5)."""
