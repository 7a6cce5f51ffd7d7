"""Samples and profiles of two streams: one function each, for paths and any frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Unpack

import pyarrow as pa

from engine.api.frames import Frame
from engine.api.keywords import takes
from engine.api.pair import pair_of
from engine.api.result import Result
from engine.archives.moments import windows_timed
from engine.jobs.profile.run import run_profile
from engine.jobs.sample.run import run_sample
from engine.models.profile.model import ArrivalProfile
from engine.options import where
from engine.options.profile import PROFILE, Profile, ProfileOutput, profile_of
from engine.options.replay import job_of
from engine.options.sample import SAMPLE, AggregatesOut, Sample, sample_of
from engine.report.profile_charts import figure_of, profile_shown
from engine.report.recording import recording
from engine.report.sample_table import sample_shown
from engine.runtime.executors import Executor, Progress, ThreadExecutor


class SampleFiles(Sample, AggregatesOut, where.Out, where.Cache, total=False):
    """The keywords of a sample."""


class SampleFound(Result):
    """A sample: `aggregates` has the estimates of each aggregate, by its text."""

    aggregates: Mapping[str, pa.Table] = {}


@takes(SAMPLE)
def sample(
    left: Frame,
    right: Frame,
    *,
    count_only: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[SampleFiles],
) -> SampleFound:
    """Sample the join of two streams within a memory budget; streams as for `replay`.

    Parameters
    ----------
    left, right : path or frame
    count_only : bool
        Keep no outputs: the result has a report and aggregates alone.
    executor : Executor, optional
    progress : callable, optional
    **options
        As ``winnow sample`` has them.

    Returns
    -------
    SampleFound
        ``outputs`` as of `replay`, whose ``weight`` makes sums right on average.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = sample(left, right, on="key", time="t", importance="value", window=2,
    ...                fraction=0.5, method="uniform", aggregates="sum(left.value)")
    >>> found.report["exact"]["outputs"], found.report["method"]["unbiased"]
    (4, True)
    >>> sorted(set(found.outputs["weight"].to_pylist()))
    [2.0]
    >>> found.aggregates["sum(left.value)"].column_names[-6:]
    ['low', 'high', 'standard_error', 'no_interval', 'rows', 'clusters']
    """
    with pair_of(left, right, SAMPLE.from_keywords(options), job_of) as pair:
        outputs = pair.outputs(count_only=count_only)
        with recording(settle=pair.tell):
            drawn = run_sample(sample_of(pair.files), executor or ThreadExecutor(), progress)
        report = drawn.report.content
        aside, kind = pair.settle(outputs, report), pair.moments(report)
    found = SampleFound(
        outputs,
        sample_shown(drawn.report, drawn.aggregates),
        aside,
    )
    found.aggregates = {text: windows_timed(own, kind) for text, own in drawn.aggregates.items()}
    return found


class ProfileFiles(Profile, ProfileOutput, where.Cache, total=False):
    """The keywords of a profile."""


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

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"]})
    >>> found = profile(left, right, on="key", time="t", window=2).profile
    >>> found.exact["outputs"], found.streams[0].age.buckets, found.streams[1].age.matches
    (4, (0.6666666666666666, 0.3333333333333333), 0.3333333333333333)
    """
    given = PROFILE.from_keywords(options)
    with pair_of(left, right, given, lambda own: profile_of(own).base) as pair:
        job = profile_of(pair.files)
        if any(table is not None for table in pair.tables):
            job = replace(job, asked=None)
        made = run_profile(job, executor or ThreadExecutor(), progress)
    curves = [
        {"side": side, "bucket": number, "matches": matches}
        for side, stream in zip(("left", "right"), made.streams, strict=True)
        for number, matches in enumerate(stream.age.buckets)
    ]
    table = pa.Table.from_pylist(curves)
    found = ProfileFound(table, profile_shown(made), drawn=partial(figure_of, made))
    found.profile = made
    return found
