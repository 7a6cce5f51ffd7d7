"""`yield` by the GPU's kernels, in the CUDA simulator, where it has learnt something."""

from __future__ import annotations

import lockstep
import pytest
from replay_cases import Case
from test_replay_kernels import VARIANTS, check
from yield_cases import PROBES, lagged


@pytest.mark.parametrize("probe", PROBES)
def test_retains_what_the_oracle_does_once_it_has_learnt(probe: str) -> None:
    for seed, params in enumerate(({}, {"buckets": 3, "sample": 16}, {"counters": 8})):
        lockstep.SEED = seed
        left, right = lagged(20 + seed, 120)
        case = Case(left, right, (40, 35), (7, 5), "yield", params, "window", probe)
        check(case, VARIANTS[seed])
