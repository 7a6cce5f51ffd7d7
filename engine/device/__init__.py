"""The GPU's side of the engine: lanes laid out for the kernels of `gpu_kernels`, and drivers.

It imports the rooms whose work it does. A newcomer starts with `replay.py`; the choice between CPU
and GPU is `engine.runtime.device_choice`.
"""
