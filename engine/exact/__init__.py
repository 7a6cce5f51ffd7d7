"""Exact two-way sliding-window equi-joins on the CPU (contract, section 1).

`count_pairs` counts the output of streams in memory, `emit_pairs` and `all_pairs` write it down,
`ExactStream` counts archives that do not fit in memory, batch by batch. It imports `facts` and
`runtime`. A newcomer starts with `pairs.py`, then `stream.py`.
"""

from engine.exact.count import ExactCount, count_pairs
from engine.exact.pairs import all_pairs, emit_pairs
from engine.exact.stream import ExactStream
from gpu_kernels.combine import COMBINES

__all__ = ["COMBINES", "ExactCount", "ExactStream", "all_pairs", "count_pairs", "emit_pairs"]
