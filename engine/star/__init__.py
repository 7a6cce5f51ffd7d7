"""Joins of several streams through one fact relation within a memory budget (P2).

It imports `replay`, `facts` and what lies below. A newcomer starts with `lane.py`.
"""
