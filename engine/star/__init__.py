"""Star-streaming joins of any number of streams through a fact relation (contract, section 5)."""
