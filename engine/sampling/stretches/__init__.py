"""Totals of a join from a sample of stretches of time, with intervals: statistics in NumPy alone.

`slices.py` says how time is cut, `design.py` which slices are drawn, and `interval.py` what they
say of the whole.
"""
