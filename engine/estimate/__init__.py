"""Totals of a join from a sample of stretches of time, with intervals: statistics in NumPy alone.

It imports `runtime`. A newcomer starts with `slices.py` (how time is cut), then reads `design.py`
(which slices are drawn) and `interval.py` (what they say of the whole).
"""
