"""Lanes on a GPU: their columns, the kernels' numbers, and what came of them."""
