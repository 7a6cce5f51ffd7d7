"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers.

`replay_tables` joins Arrow tables (it is `engine.api.replay`; ``engine.replay`` is the subpackage)
and `replay_archives` joins files; `sweep_tables` and `sweep_archives` do so under a grid of
settings; `sample_tables` and `sample_archives` sample a join and estimate aggregates of it;
`bound_tables` and `bound_archives` say what would be best; `profile_tables` and `profile_archives`
measure what streams are like; `allocate_joins` divides one memory over several joins;
`lookup_tables` and `lookup_archives` join one stream with a changing relation, and `replay_streams`
joins two streams or more through one; `multijoin_streams` joins several on any predicate,
`register_theta` one of the user's own. All are loaded when first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.allocation.api import allocate_joins
    from engine.api import ReplayResult, replay_archives
    from engine.api import replay as replay_tables
    from engine.bound_api import BoundResult, bound_archives, bound_tables
    from engine.lookup.api import LookupResult, lookup_archives, lookup_tables
    from engine.multijoin.api import MultiJoinOutput
    from engine.multijoin.api import multijoin as multijoin_streams
    from engine.multiway.predicate import register_theta
    from engine.profile.api import profile_archives, profile_tables
    from engine.profile.model import ArrivalProfile
    from engine.sampling.api import SampleResult, sample_archives, sample_tables
    from engine.star.api import StreamsResult, replay_streams
    from engine.sweep.api import sweep_archives, sweep_tables
    from engine.sweep.run import SweepResult

__all__ = [
    "ArrivalProfile",
    "BoundResult",
    "LookupResult",
    "MultiJoinOutput",
    "ReplayResult",
    "SampleResult",
    "StreamsResult",
    "SweepResult",
    "allocate_joins",
    "bound_archives",
    "bound_tables",
    "lookup_archives",
    "lookup_tables",
    "multijoin_streams",
    "profile_archives",
    "profile_tables",
    "register_theta",
    "replay_archives",
    "replay_streams",
    "replay_tables",
    "sample_archives",
    "sample_tables",
    "sweep_archives",
    "sweep_tables",
]

_NAMES = {
    "allocate_joins": ("engine.allocation.api", "allocate_joins"),
    "ArrivalProfile": ("engine.profile.model", "ArrivalProfile"),
    "BoundResult": ("engine.bound_api", "BoundResult"),
    "bound_archives": ("engine.bound_api", "bound_archives"),
    "bound_tables": ("engine.bound_api", "bound_tables"),
    "LookupResult": ("engine.lookup.api", "LookupResult"),
    "lookup_archives": ("engine.lookup.api", "lookup_archives"),
    "lookup_tables": ("engine.lookup.api", "lookup_tables"),
    "MultiJoinOutput": ("engine.multijoin.api", "MultiJoinOutput"),
    "multijoin_streams": ("engine.multijoin.api", "multijoin"),
    "profile_archives": ("engine.profile.api", "profile_archives"),
    "profile_tables": ("engine.profile.api", "profile_tables"),
    "register_theta": ("engine.multiway.predicate", "register_theta"),
    "ReplayResult": ("engine.api", "ReplayResult"),
    "SampleResult": ("engine.sampling.api", "SampleResult"),
    "StreamsResult": ("engine.star.api", "StreamsResult"),
    "SweepResult": ("engine.sweep.run", "SweepResult"),
    "replay_archives": ("engine.api", "replay_archives"),
    "replay_streams": ("engine.star.api", "replay_streams"),
    "replay_tables": ("engine.api", "replay"),
    "sample_archives": ("engine.sampling.api", "sample_archives"),
    "sample_tables": ("engine.sampling.api", "sample_tables"),
    "sweep_archives": ("engine.sweep.api", "sweep_archives"),
    "sweep_tables": ("engine.sweep.api", "sweep_tables"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    if name in _NAMES:
        module, attribute = _NAMES[name]
        return getattr(importlib.import_module(module), attribute)  # numba takes a second
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
