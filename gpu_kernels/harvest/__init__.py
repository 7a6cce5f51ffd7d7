"""Harvest fractions on the GPU: cost and output rate (P4 4.3) of many settings of many joins."""
