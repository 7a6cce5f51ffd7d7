"""Two-way window joins within a memory budget (contract, section 2)."""
