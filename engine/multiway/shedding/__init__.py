"""Shedding: which tuples are dropped before they join."""
