"""A sample as Python keywords say it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from engine.options.keywords import Budgeted, Join
from engine.options.replay import JobOptions
from engine.options.sample import SampleOptions
from engine.runtime.errors import SpecError


class Sample(Budgeted, total=False):
    """All keywords of a sample."""

    method: str
    size: str | None
    count: str | None
    fraction: float | None
    overflow: float | None
    confidence: float
    aggregates: str | Sequence[str]
    exact_aggregates: bool
    profile: str | os.PathLike[str] | None


def join_of(keywords: Sample) -> Join:
    """Return the keywords that a replay knows too.

    Raises
    ------
    TypeError
        If there is no such keyword.
    SpecError
        If one is of a replay alone.
    """
    for name in keywords:
        if name in Sample.__annotations__:
            continue
        if name.startswith("fact"):
            raise SpecError(
                "a sample is of streams that share their join attribute: leave fact out"
            )
        raise TypeError(f"unexpected keyword {name!r}")
    found = {name: v for name, v in keywords.items() if name in Budgeted.__annotations__}
    return cast("Join", found)


def sample_of(
    base: JobOptions, keywords: Sample, aggregates_out: str | os.PathLike[str] | None = None
) -> SampleOptions:
    """Return the sample that the keywords describe, of a job's archives."""
    given: dict[str, Any] = dict(keywords)
    own = ("method", "size", "count", "fraction", "overflow", "confidence", "exact_aggregates")
    aggregates, profile = given.get("aggregates", ()), given.get("profile")
    return SampleOptions(
        base,
        aggregates=(aggregates,) if isinstance(aggregates, str) else tuple(aggregates),
        aggregates_out=None if aggregates_out is None else Path(aggregates_out),
        profile=None if profile is None else Path(profile),
        **{name: given[name] for name in own if name in given},
    )
