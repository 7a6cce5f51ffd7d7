"""Samplers of a join's outputs and the aggregates estimated from them (P5 4.3).

It imports `replay` and what lies below. A newcomer starts with `lane.py` and `aggregates/spec.py`.
"""
