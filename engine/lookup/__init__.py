"""``winnow lookup``: the semi-streaming join of one stream with the fact relation (P2 2.1)."""
