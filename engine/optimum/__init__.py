"""The offline optimum of a join under a memory budget, and certified bounds of it."""
