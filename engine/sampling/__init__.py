"""Samples of a join's output with weights, and unbiased estimates from them (P5 4)."""
