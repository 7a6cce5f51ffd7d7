"""The certificate of the offline optimum on the GPU: the Lagrange dual of a side, and its slope."""
