"""Estimates of a join's totals from stretches of two archives."""
