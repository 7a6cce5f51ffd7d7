"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers.

`winnow` has one function for each task, of archives and of frames. These take archives alone and
give the report as the command line writes it; rows are written only where `out` says. All are
loaded when first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api.bound import bound_archives
    from engine.api.lookup import lookup_archives
    from engine.api.replay import replay_archives
    from engine.api.sample import SampleResult, sample_archives
    from engine.models.profile.model import ArrivalProfile
    from engine.multiway.predicate import register_theta

__all__ = [
    "ArrivalProfile", "SampleResult", "bound_archives", "lookup_archives", "register_theta",
    "replay_archives", "sample_archives",
]  # fmt: skip

_MODULES = {
    "engine.api.bound": ("bound_archives",),
    "engine.api.lookup": ("lookup_archives",),
    "engine.api.replay": ("replay_archives",),
    "engine.api.sample": ("SampleResult", "sample_archives"),
    "engine.models.profile.model": ("ArrivalProfile",),
    "engine.multiway.predicate": ("register_theta",),
}
_INSTEAD = {
    "allocate_joins": "allocate",
    "estimate_archives": "estimate",
    "estimate_streams": "estimate",
    "multijoin_streams": "multijoin",
    "sweep_archives": "sweep",
    "profile_archives": "profile",
    "replay_streams": "replay_streams",
} | {f"{task}_tables": task for task in ("bound", "lookup", "profile", "replay", "sample", "sweep")}
"""Functions of `winnow` that do what names of this package did."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    for module, names in _MODULES.items():
        if name in names:  # numba takes a second
            return getattr(importlib.import_module(module), name)
    remedy = f": call winnow.{_INSTEAD[name]} instead" if name in _INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy}")
