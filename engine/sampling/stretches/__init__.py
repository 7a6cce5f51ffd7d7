"""Totals of a join from a sample of stretches of time, with intervals: statistics in NumPy alone.

`slices.py` says how time is cut, `design.py` which slices are drawn, `interval.py` what they say
of the whole, `pooled.py` how much they differ within windows of time, and `lead_in.py` what is
uncertain besides where slices are replayed.
"""
