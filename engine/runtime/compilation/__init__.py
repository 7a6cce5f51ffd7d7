"""How kernels are compiled, kept on disk, and interpreted where there is little to do.

`engine.runtime.jit` is the door: kernels are written with its decorator.
"""
