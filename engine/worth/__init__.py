"""What keeping a tuple is worth a tick: estimated from what has arrived (docs/yield.md)."""
