"""Counting the exact join of a lane: by key and time, in slices, and cached between runs."""
