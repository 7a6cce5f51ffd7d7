"""Samples and profiles of two streams: one function each, for paths and any frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from engine.api.frames import Frame
from engine.api.keywords import takes
from engine.api.pair import pair_of
from engine.api.profile import ProfileFiles
from engine.api.result import Result
from engine.api.sample import SampleFiles
from engine.archives.moments import windows_timed
from engine.jobs.profile.run import run_profile
from engine.jobs.sample.run import run_sample
from engine.models.profile.model import ArrivalProfile
from engine.options.profile import PROFILE, profile_of
from engine.options.replay import job_of
from engine.options.sample import SAMPLE, sample_of
from engine.report.profile_charts import profile_shown
from engine.report.profile_plots import figure_of as profile_figure
from engine.report.sample_table import sample_shown
from engine.runtime.executors import Executor, Progress, ThreadExecutor


class SampleFound(Result):
    """A sample: `aggregates` has the estimates of each aggregate, by its text."""

    aggregates: Mapping[str, pa.Table] = {}


@takes(SAMPLE)
def sample(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[SampleFiles],
) -> SampleFound:
    """Sample the join of two streams within a memory budget; streams as for `replay`.

    Parameters
    ----------
    left, right : path or frame
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow sample`` has them.

    Returns
    -------
    SampleFound
        ``outputs`` as of `replay`, whose ``weight`` makes sums right on average.
    """
    with pair_of(left, right, SAMPLE.from_keywords(options), job_of) as pair:
        outputs = pair.outputs()
        drawn = run_sample(
            sample_of(pair.files), executor or ThreadExecutor(), progress, unit=pair.unit
        )
        report = drawn.report.content
        aside, kind = pair.settle(outputs, report), pair.moments(report)
    found = SampleFound(
        outputs,
        sample_shown(drawn.report, drawn.aggregates),
        aside,
    )
    found.aggregates = {text: windows_timed(own, kind) for text, own in drawn.aggregates.items()}
    return found


class ProfileFound(Result):
    """A profile: `profile` is what other tasks take, and what ``profile.save`` writes."""

    profile: ArrivalProfile


@takes(PROFILE)
def profile(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[ProfileFiles],
) -> ProfileFound:
    """Measure what two streams are like; streams as for `replay`.

    Parameters
    ----------
    left, right : path or frame
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow profile`` has them.

    Returns
    -------
    ProfileFound
        ``outputs`` has the age curves: ``side``, ``bucket``, ``matches`` a tuple in that bucket;
        ``plot("drift")`` draws one of five plots.
    """
    with pair_of(left, right, PROFILE.from_keywords(options), job_of) as pair:
        job = replace(profile_of(pair.files), unit=pair.unit)
        if any(table is not None for table in pair.tables):
            job = replace(job, asked=None)
        made = run_profile(job, executor or ThreadExecutor(), progress)
    curves = [
        {"side": side, "bucket": number, "matches": matches}
        for side, stream in zip(("left", "right"), made.streams, strict=True)
        for number, matches in enumerate(stream.age.buckets)
    ]
    found = ProfileFound(
        pa.Table.from_pylist(curves),
        profile_shown(made),
        drawn=partial(_profile_plot, made),
    )
    found.profile = made
    return found


def _profile_plot(made: ArrivalProfile, name: str = "age_curves") -> Any:  # noqa: ANN401
    return profile_figure(made, name)
