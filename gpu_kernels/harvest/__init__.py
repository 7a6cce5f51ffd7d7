"""Harvest fractions on the GPU: cost and output rate (P4 4.3) of many settings of many joins.

`formulas` has C and O for every device, `layout` and `space` the arrays of joins and settings, and
`on_device` drives the kernels of `counted` and `search`. Start with `formulas`.
"""
