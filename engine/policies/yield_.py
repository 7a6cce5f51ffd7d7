"""YIELD: what keeping a tuple is expected to yield a tick, from what has arrived (docs/yield.md).

The estimate follows both streams whatever is retained of them (``engine.value_model``). It gives
every arrival a value, and each side a table by age and by whether a tuple has matched yet; their
product is the priority.
"""

from __future__ import annotations

from engine.policies.base import Across, Parameter, Policy, Structure
from gpu_kernels.portable import portable


@portable
def priority(value: float, best: float) -> float:
    """Return the priority of a tuple of a value, for which the table has `best` now."""
    return value * best


POLICY = Policy(
    name="yield",
    order=120,
    source="docs/yield.md",
    summary="importance a tick that a tuple is expected to yield, estimated from all that arrives",
    structure=Structure.VALUED,
    across=Across.CORRECTED,
    estimates=False,
    parameters=(
        Parameter(
            "counters",
            "keys counted at once, rounded up to a power of two",
            default=65_536.0,
            least=4.0,
            most=2.0**24,
        ),
        Parameter(
            "sample",
            "tuples of each side whose matches are watched at once, rounded up likewise",
            default=1024.0,
            least=4.0,
            most=2.0**20,
        ),
        Parameter("buckets", "age buckets", default=32.0, least=1.0, most=256.0),
    ),
)
