"""Joins of several streams: exact, by nested loops and hashing (P3), harvested and shed (P4).

`predicate.py` and `streams.py` are the model; `exact`, `loops` and `harvest` compute the join,
`fractions` chooses harvest fractions, `orders` costs join orders. It imports `engine.exact` and
what lies below. A newcomer starts with `predicate.py`.
"""
