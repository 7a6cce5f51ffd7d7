"""winnow: sliding-window joins of archived streams within a memory budget.

One function for each task takes files, or frames of pandas, polars, PyArrow, Spark and all that
speaks Arrow, and gives back one kind of result: ``.outputs``, ``.report``, ``.plot()``. Each is
loaded when it is first asked for. ``winnow.spark`` has what is of Spark's SQL.

>>> import pandas as pd, winnow
>>> left = pd.DataFrame({"at": pd.to_datetime([0, 60], unit="s"), "item": [1, 2]})
>>> right = pd.DataFrame({"at": pd.to_datetime([30, 70], unit="s"), "item": [1, 2]})
>>> winnow.replay(left, right, on="item", time="at", window="30s").outputs["ts"].to_pylist()[0]
datetime.datetime(1970, 1, 1, 0, 0, 30)
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.api.allocate import allocate
    from engine.api.estimate import estimate
    from engine.api.explain import explain
    from engine.api.pairs import bound, replay, sweep
    from engine.api.result import Result
    from engine.api.sampled import profile, sample
    from engine.api.tasks import generate, lookup, multijoin, replay_streams
    from engine.models.profile.model import ArrivalProfile
    from engine.multiway.predicate import register_theta
    from engine.runtime.errors import WinnowError
    from spark_plugin import sql as spark

    __version__: str

__all__ = [
    "ArrivalProfile", "Result", "WinnowError", "__version__", "allocate", "bound", "estimate",
    "explain", "generate", "lookup", "multijoin", "profile", "register_theta", "replay",
    "replay_streams", "sample", "spark", "sweep",
]  # fmt: skip

_HOMES = {
    "engine.api.allocate": ("allocate",),
    "engine.api.estimate": ("estimate",),
    "engine.api.explain": ("explain",),
    "engine.api.pairs": ("bound", "replay", "sweep"),
    "engine.api.result": ("Result",),
    "engine.api.sampled": ("profile", "sample"),
    "engine.api.tasks": ("generate", "lookup", "multijoin", "replay_streams"),
    "engine.models.profile.model": ("ArrivalProfile",),
    "engine.multiway.predicate": ("register_theta",),
    "engine.runtime.errors": ("WinnowError",),
}
_SPARK = "spark_plugin.sql"


if not TYPE_CHECKING:  # or every name would be an attribute to type checkers

    def __getattr__(name: str) -> object:
        if name == "__version__":
            return metadata.version("winnowjoin")
        if name == "spark":
            return import_module(_SPARK)
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(home), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
