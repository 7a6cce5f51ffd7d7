"""Counting the exact join of a lane: by key and time, in slices, and kept between runs."""
