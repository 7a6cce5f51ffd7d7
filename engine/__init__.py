"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers.

`replay_tables` joins Arrow tables and `replay_archives` joins files; `sweep_tables` and
`sweep_archives` do so under a grid of settings; `sample_tables` and `sample_archives` sample a join
and estimate aggregates of it; `estimate_archives` and `estimate_streams` estimate them from
stretches of time; `bound_tables` and `bound_archives` say what would be best; `profile_tables` and
`profile_archives` measure what streams are like; `allocate_joins` divides one memory over several
joins; `lookup_tables` and `lookup_archives` join one stream with a changing
relation, and `replay_streams` joins two streams or more through one; `multijoin_streams` joins
several on any predicate, `register_theta` one of the user's own. All are loaded when first asked
for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api.allocate import allocate_joins
    from engine.api.bound import BoundResult, bound_archives, bound_tables
    from engine.api.estimate import EstimateResult, estimate_archives, estimate_streams
    from engine.api.lookup import LookupResult, lookup_archives, lookup_tables
    from engine.api.multijoin import MultiJoinOutput
    from engine.api.multijoin import multijoin as multijoin_streams
    from engine.api.profile import profile_archives, profile_tables
    from engine.api.replay import ReplayResult, replay_archives
    from engine.api.replay import replay as replay_tables
    from engine.api.sample import SampleResult, sample_archives, sample_tables
    from engine.api.star import StreamsResult, replay_streams
    from engine.api.sweep import sweep_archives, sweep_tables
    from engine.jobs.sweep.run import SweepResult
    from engine.models.profile.model import ArrivalProfile
    from engine.multiway.predicate import register_theta

__all__ = [
    "ArrivalProfile", "BoundResult", "EstimateResult", "LookupResult", "MultiJoinOutput",
    "ReplayResult", "SampleResult", "StreamsResult", "SweepResult", "allocate_joins",
    "bound_archives", "bound_tables", "estimate_archives", "estimate_streams", "lookup_archives",
    "lookup_tables", "multijoin_streams", "profile_archives", "profile_tables", "register_theta",
    "replay_archives", "replay_streams", "replay_tables", "sample_archives", "sample_tables",
    "sweep_archives", "sweep_tables",
]  # fmt: skip

_MODULES = {
    "engine.api.allocate": ("allocate_joins",),
    "engine.api.bound": ("BoundResult", "bound_archives", "bound_tables"),
    "engine.api.estimate": ("EstimateResult", "estimate_archives", "estimate_streams"),
    "engine.api.lookup": ("LookupResult", "lookup_archives", "lookup_tables"),
    "engine.api.multijoin": ("MultiJoinOutput", "multijoin_streams"),
    "engine.api.profile": ("profile_archives", "profile_tables"),
    "engine.api.replay": ("ReplayResult", "replay_archives", "replay_tables"),
    "engine.api.sample": ("SampleResult", "sample_archives", "sample_tables"),
    "engine.api.star": ("StreamsResult", "replay_streams"),
    "engine.api.sweep": ("sweep_archives", "sweep_tables"),
    "engine.jobs.sweep.run": ("SweepResult",),
    "engine.models.profile.model": ("ArrivalProfile",),
    "engine.multiway.predicate": ("register_theta",),
}
_CALLED = {"multijoin_streams": "multijoin", "replay_tables": "replay"}
"""Names that their modules have otherwise."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    for module, names in _MODULES.items():
        if name in names:  # numba takes a second
            return getattr(importlib.import_module(module), _CALLED.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
