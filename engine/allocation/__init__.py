"""One memory for several joins: how it is shared so that none does too badly (P5 5)."""
