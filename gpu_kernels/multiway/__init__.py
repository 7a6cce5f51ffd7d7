"""Device code of multi-way joins (P3, P4): predicates, the walk of a tuple, and its kernels.

`predicates` and `walk` are plain functions for every device; `together` and `kernels` are CUDA's,
and `on_device` drives them. Start with `walk`.
"""
