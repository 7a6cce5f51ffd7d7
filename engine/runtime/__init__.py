"""What every room stands on: errors, executors, devices, time units; compilation and storage.

It knows nothing of joins. It imports numpy, numba and `gpu_kernels`, and no other room of `engine`.
A newcomer starts with `errors.py`, then `jit.py`, which says how functions are compiled and cached;
`compilation` is how, and `storage` finds, reads and writes files.
"""
