"""Exact window equi-joins of many lanes on a GPU.

`count_pairs`, `match_arrivals` and `emit_pairs` work on whole streams. Importing this package loads
numba-cuda: import it inside functions.
"""

from gpu_kernels.probe.driver import Matched, count_pairs, emit_pairs, match_arrivals
from gpu_kernels.probe.streams import ProbeError, Stream

__all__ = [
    "Matched",
    "ProbeError",
    "Stream",
    "count_pairs",
    "emit_pairs",
    "match_arrivals",
]
