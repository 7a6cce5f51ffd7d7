"""Tests of kernels in numba's CUDA simulator: run with NUMBA_ENABLE_CUDASIM=1 (`make test`)."""

from __future__ import annotations

import os

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    import lockstep

    lockstep.install()
else:
    collect_ignore_glob = ["test_*.py"]
