"""The certificate of the offline optimum on the GPU: a Lagrange dual and its slope."""
