"""Estimates from Python: the command line's work as a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, overload

import pyarrow as pa

from engine.api.files import ORDER, Files, in_files
from engine.api.frames import Frame, by_name
from engine.api.keywords import lists, takes
from engine.api.result import Result
from engine.api.tables import check_columns, temporary
from engine.archives.moments import time_type, windows_timed
from engine.jobs.estimate.report import Estimation
from engine.jobs.estimate.run import run_estimate
from engine.options.by_stream import by_stream
from engine.options.command import Given
from engine.options.estimate import ESTIMATE, Estimate, estimate_of
from engine.options.estimate_streams import ESTIMATE_STREAMS, EstimateStreams, estimate_streams_of
from engine.options.replay import sided
from engine.report.estimate_table import estimate_shown
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, ThreadExecutor
from engine.runtime.time_units import parse_instant

_FACT_TIMES = "fact_begin", "fact_end", "fact_time"


class EstimateFound(Result):
    """An estimate: `aggregates` has the estimates of each aggregate, by its text."""

    aggregates: Mapping[str, pa.Table] = {}


@overload
def estimate(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Estimate],
) -> EstimateFound: ...
@overload
def estimate(
    left: Mapping[str, Frame],
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[EstimateStreams],
) -> EstimateFound: ...
@lists(Estimate, EstimateStreams)
def estimate(left: Any, right: Any = None, **options: Any) -> EstimateFound:
    """Estimate totals of the join of archives from stretches of their time.

    Parameters
    ----------
    left, right : path or frame
        File, folder or glob of Parquet that is sorted by time; or a frame, which is written to a
        temporary file in order of time, and of which less is joined, not read: its rows are
        numbered in that order, by which policy ``rand`` draws. Or as `left` alone a mapping of
        several streams by name, which a `predicate` joins.
    executor : Executor, optional
    progress : callable, optional
    **options
        Of two streams as ``winnow estimate`` has them, of several as it has with ``--stream``.

    Returns
    -------
    EstimateFound
        ``outputs`` has the estimates of the first aggregate; ``plot`` draws it by time.

    Raises
    ------
    WinnowError
        If an option is invalid, or an archive cannot be read in stretches.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow.parquet as pq
    >>> rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    >>> for name in ("left", "right"):
    ...     rows = {"t": np.arange(100_000), "k": rng.integers(0, 50, 100_000)}
    ...     pq.write_table(pa.table(rows), f"{folder}/{name}.parquet", row_group_size=200)
    >>> found = estimate(f"{folder}/left.parquet", f"{folder}/right.parquet", on="k",
    ...                  time="t", window=20, read="20%")
    >>> found.report["how"], found.report["read"]["share"] < 0.5
    ('sample', True)
    >>> [line] = found.aggregates["count(*)"].to_pylist()
    >>> line["low"] < 100_000 * 41 / 50 < line["high"]
    True

    Three streams, which a predicate joins:

    >>> rng, folder, places = np.random.default_rng(0), tempfile.mkdtemp(), {}
    >>> for name in ("a", "b", "c"):
    ...     places[name] = f"{folder}/{name}.parquet"
    ...     rows = {"t": np.arange(60_000), "v": rng.random(60_000)}
    ...     pq.write_table(pa.table(rows), places[name], row_group_size=200)
    >>> found = estimate(places, predicate="band:v:0.1", time="t", window=5, within="10%")
    >>> found.report["how"], found.report["read"]["share"] < 0.5
    ('sample', True)
    """
    if not isinstance(left, Mapping):
        return _of_two(left, right, **options)
    if right is not None:
        raise SpecError("right is one of two streams, and left names several: leave it out")
    return _of_several(left, **options)


@takes(ESTIMATE, "estimate")
def _of_two(
    left: Frame,
    right: Frame,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[Estimate],
) -> EstimateFound:
    """Estimate totals of the join of two archives.

    Returns
    -------
    EstimateFound
    """
    given = ESTIMATE.from_keywords(options)
    frames: dict[str, Frame] = {"left": left, "right": right}
    times = {side: sided(given, "time", side) for side in frames}
    if given["fact"] is not None:
        frames["fact"] = given["fact"]
    with temporary(ORDER) as folder:
        others = [own for name in _FACT_TIMES if (own := given.get(name)) is not None]
        files = in_files(frames, times, folder, others)
        base = estimate_of(Given(given.options, {**given, **files.paths})).base
        check_columns(base, files.sources, files.paths)
        asked = estimate_of(_on(given, files, files.paths))
        made = run_estimate(asked, executor or ThreadExecutor(), progress)
        return _found(made, files, "left")


@takes(ESTIMATE_STREAMS, "estimate")
def _of_several(
    streams: Mapping[str, Frame],
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    **options: Unpack[EstimateStreams],
) -> EstimateFound:
    """Estimate totals of the join of several archives.

    Returns
    -------
    EstimateFound
    """
    given = ESTIMATE_STREAMS.from_keywords(options)
    times = by_stream("time", given.get("time"), list(by_name(streams)))
    with temporary(ORDER) as folder:
        files = in_files(streams, times, folder)
        asked = estimate_streams_of(files.paths, _on(given, files, {}))
        made = run_estimate(asked, executor or ThreadExecutor(), progress)
        return _found(made, files, asked.base.streams[0].name)


def _on(given: Given, files: Files, more: Mapping[str, str]) -> Given:
    """Return the options on files, which may have plain numbers in place of seconds."""
    found = Given(given.options, {**given, **more})
    if files.unit is not None:
        found["time_unit"] = files.unit
        if given.get("start_ts") is not None:
            zone = next(iter(files.kinds.values())).tz
            found["start_ts"] = str(parse_instant(given["start_ts"], files.unit, "start_ts", zone))
    return found


def _found(made: Estimation, files: Files, name: str) -> EstimateFound:
    """Return a result whose times are like those of a stream."""
    window, first = made.report.content["window"], next(iter(made.aggregates))
    if name in files.kinds:
        window["zone"] = getattr(files.kinds[name], "tz", None)
    kind = time_type(window["tick"], window["zone"])
    timed = {text: windows_timed(own, kind) for text, own in made.aggregates.items()}
    found = EstimateFound(timed[first], estimate_shown(made.report, made.aggregates))
    found.aggregates = timed
    return found
