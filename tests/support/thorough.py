"""What `make thorough` tries and `make test` does not, beside cases (`cases_tried`).

That is repeats of a property in other settings, and tests that take long and guard one place:
RAPIDS plans, images, faults of a cluster, clusters of made-up GPUs, most kernels compiled for real
ones, measured memory. `make test` compares with every oracle. `.ci/run` tells which files the last
commits changed: tests that guard their places run there, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from places import ROOT

T = TypeVar("T")
THOROUGH = os.environ.get("WINNOW_THOROUGH") == "1"
CHANGED = os.environ.get("WINNOW_CHANGED", "").split()
"""Files, as git names them."""
KERNELS = (
    "engine/facts",
    "engine/policies",
    "engine/replay",
    "engine/runtime",
    "engine/value_model",
    "gpu_kernels",
)
"""What the kernels of replays are made of."""


def of_each_kind() -> bool:
    """Return whether replays of units are by the kernels of their policies' kinds.

    Those of jobs are so for `make thorough`. Otherwise by the one for all kinds
    (`engine.replay.common`), where `make test` says that no kernel has changed: those of each kind
    take minutes to compile.
    """
    places = tuple(f"{place}/" for place in KERNELS)
    told = "WINNOW_CHANGED" in os.environ and not THOROUGH
    return not told or any(file.startswith(places) for file in CHANGED)


_REASON = "it takes long: make thorough"


def guards(*places: str) -> pytest.MarkDecorator:
    """Mark long tests: for `make thorough`, and for changes in the places that they guard.

    A place is a file or a folder; the test's own file is to be one of them.
    """
    for place in places:
        if not (ROOT / place).exists():
            raise FileNotFoundError(f"tests guard {place}, which is not there: name another")
    changed = any(f"{file}/".startswith(f"{place}/") for file in CHANGED for place in places)
    return pytest.mark.skipif(not (THOROUGH or changed), reason=_REASON)


def on_guard(marks: Iterable[pytest.Mark]) -> bool:
    """Return whether a test with these marks guards a place that changed."""
    return any(mark.args == (False,) and mark.kwargs.get("reason") == _REASON for mark in marks)


def guarded(cases: Iterable[Any], *places: str) -> list[Any]:
    """Return cases that are tried for `make thorough`, and for changes in the places they guard."""
    mark = guards(*places)
    return [pytest.param(*(own if isinstance(own, tuple) else (own,)), marks=mark) for own in cases]


def often() -> range:
    """Return how often a fault is tried: ten times for `make thorough`, else once.

    ``WINNOW_FAULT_TIMES`` says otherwise.
    """
    return range(int(os.environ.get("WINNOW_FAULT_TIMES", "10" if THOROUGH else "1")))


def repeats(cases: Iterable[T]) -> list[T]:
    """Return the cases for `make thorough`, and none for `make test`."""
    return list(cases) if THOROUGH else []
