"""The estimator behind the policy `yield`: what a tuple is expected to yield, by its age.

It imports `facts`, `exact`, `models` and what lies below. A newcomer starts with `estimate.py`;
docs/yield.md has the definition.
"""
