"""Exact window equi-joins of many lanes on a GPU, and arrivals against join memories.

`count_pairs`, `sum_pairs` and `emit_pairs` work on whole streams, `count_matches` on join
memories. Importing this package loads numba-cuda: import it inside functions.
"""

from gpu_kernels.probe.driver import Totals, count_pairs, emit_pairs, sum_pairs
from gpu_kernels.probe.residents import count_matches
from gpu_kernels.probe.streams import DoesNotFitError, ProbeError, Stream

__all__ = [
    "DoesNotFitError",
    "ProbeError",
    "Stream",
    "Totals",
    "count_matches",
    "count_pairs",
    "emit_pairs",
    "sum_pairs",
]
