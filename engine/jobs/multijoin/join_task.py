"""A multi-way join, its archives opened, and all checked that can be without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.archives.families import plain_type
from engine.archives.normalise import BadRows, FaultTally, bad_rows_error
from engine.archives.roles import (
    JoinColumns,
    Roles,
    check_importance,
    check_present,
    common_time,
    stated_unit,
)
from engine.jobs.multijoin.attributes import check_attributes, check_groups
from engine.jobs.multijoin.orders import check_loops
from engine.jobs.multijoin.read import WHOLE, Share
from engine.jobs.multijoin.vectors import resolved
from engine.jobs.streams import StreamSource, check_output, open_source, output_schema
from engine.models.profile.model import ArrivalProfile
from engine.multiway.fractions.profile import MOST_BASIC_WINDOWS
from engine.multiway.harvest.learning.priors import PairPrior
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import Windows, basic_counts, windows_of
from engine.options.multijoin import AUTO, ROWS, JoinStream, MultiJoinOptions
from engine.options.shedding import HARVEST_TIMES
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES
from engine.runtime.time_units import parse_instant, parse_ticks, parse_window
from engine.runtime.warned import warn

TICKS = {"tick": 1.0, "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "day": 1.0 / 86_400}
"""Of a second; where times are plain numbers a tick is taken for one."""


@dataclass(frozen=True)
class MultiJoinTask:
    """A join, or a share of it."""

    options: MultiJoinOptions
    sources: tuple[StreamSource, ...]
    columns: JoinColumns
    unit: str
    """What a tick is."""
    windows: Windows
    start_ts: int | None
    tau: int | None
    expire_every: int | None
    """`tau`, `expire_every`: Ticks."""
    harvest: HarvestSettings | None
    edges: tuple[int, ...]
    """Left edges of the time bins, and the end of the last."""
    share: Share = WHOLE
    capacities: tuple[float, ...] = ()
    """Comparisons a second of each of the share's lanes; none: they have no capacity, or all of
    it."""
    threads: int | None = None
    beside: int = 1
    """Tasks that run at once, this one included."""
    draft: Place | None = None
    """Folder for the part of the dataset; None to count only."""
    tried: bool = True
    """Whether a harvested join and the exact one are tried before it begins."""
    priors: tuple[PairPrior, ...] = ()
    """What profiles say of the streams of a harvested join."""


def open_join(options: MultiJoinOptions) -> MultiJoinTask:
    """Open the archives, check everything that can be without reading them, and return the join.

    Raises
    ------
    WinnowError
        If an option or an archive is invalid.
    """
    sources = tuple(_source(stream) for stream in options.streams)
    for source in sources:
        check_present(source.archive, source.roles.time)
        if source.roles.importance is not None:
            check_present(source.archive, source.roles.importance)
            check_importance(source.archive, source.roles.importance)
    pairs = [(source.archive, source.columns) for source in sources]
    options = replace(options, predicate=resolved(options.predicate, pairs))
    keys = check_attributes(options.predicate, pairs)
    groups = check_groups([(own.archive, own.roles.partition_by) for own in sources])
    _check_function(options.predicate)
    clique = options.graph == "clique" and len(options.streams) > 2
    _check_top(options.predicate, options.top, clique=clique)
    read, zoned = common_time([(source.archive, source.roles.time) for source in sources])
    unit = stated_unit(read, options.time_unit)
    if options.columns == "all" and options.out is not None:
        schemas = [source.archive.schema for source in sources]
        check_output(output_schema(options.names, schemas, plain_type))
    windows, start = _windows(options, unit), options.start_ts
    tau = _ticks(options.loops.tau, unit, "--tau")
    expire_every = _ticks(options.loops.expire_every, unit, "--expire-every")
    if options.loops.method != AUTO:
        check_loops(options, tau, expire_every)
    return MultiJoinTask(
        options,
        sources,
        JoinColumns(read, zoned, keys, groups),
        unit,
        windows,
        None if start is None else parse_instant(start, unit, "--start-ts", sources[0].zone),
        tau,
        expire_every,
        _harvest(options, windows, unit),
        (),
        priors=_priors(options.profiles, options.names, windows, unit),
    )


def check_rows(
    task: MultiJoinTask, faults: Sequence[Sequence[FaultTally]], *, quarantines: bool = True
) -> None:
    """Raise `InputError` if any task has found a row that is no tuple."""
    found: list[BadRows] = []
    for source, own in zip(task.sources, zip(*faults, strict=True), strict=True):
        found += FaultTally().include(own).bad_rows(source.roles, f"stream {source.archive.side}")
    if found:
        raise bad_rows_error(found, quarantines=quarantines)


def _source(stream: JoinStream) -> StreamSource:
    roles = Roles((), stream.time, stream.importance, stream.partition_by)
    return StreamSource(*open_source(stream.source, stream.name), roles, stream.columns)


def _check_function(predicate: Predicate) -> None:
    """Raise `SpecError` if the function of a predicate cannot be compiled, or reads beyond it."""
    if predicate.function is None:
        return
    condition(predicate)
    vector = np.ones(len(predicate.columns))
    try:
        with np.errstate(all="ignore"):
            predicate.function(vector, vector)
    except IndexError as error:
        raise SpecError(
            f"function {predicate.name} of predicate {predicate.text} reads an attribute that it "
            f"does not have ({error}): name more columns, or number them from 0"
        ) from None


def _windows(options: MultiJoinOptions, unit: str) -> Windows:
    sizes, by_rows = [], []
    for stream in options.streams:
        counted = stream.window.strip().startswith(ROWS)
        by_rows.append(counted)
        if not counted:
            sizes.append(parse_window(stream.window, unit, stream.name))
            continue
        number = stream.window.strip().removeprefix(ROWS)
        if not (number.isdecimal() and number.isascii() and int(number) < 2**62):
            raise SpecError(
                f"window {stream.window!r} of stream {stream.name} is no number of tuples: write "
                "rows:100"
            )
        sizes.append(int(number))
    return windows_of(sizes, by_rows)


def _ticks(given: str | None, unit: str, option: str) -> int | None:
    return None if given is None else parse_ticks(given, unit, option + " {}", least=1)


def _harvest(options: MultiJoinOptions, windows: Windows, unit: str) -> HarvestSettings | None:
    if options.harvest is None:
        return None
    given = dict(options.harvest)
    asked = given["basic_window"]
    if options.measures:
        given["capacity"] = 1.0  # until it is measured
    for name in HARVEST_TIMES:
        given[name] = _ticks(str(given[name]), unit, "--" + name.replace("_", "-")) or 0
    given.setdefault("per_second", TICKS[unit])
    settings = HarvestSettings(**given, seed=options.seed)  # type: ignore[arg-type]
    if not windows.by_rows.any():
        _check_basic_windows(options.names, windows, settings, asked)
    return settings


def _check_top(predicate: Predicate, top: int | None, *, clique: bool) -> None:
    """Raise `SpecError` if a join has no best matches, or not so many."""
    if top is None:
        return
    if not predicate.scored:
        raise SpecError(
            f"--top {top} asks for the best scores, and predicate {predicate.text} has none: "
            "choose cosine, distance, or inner on dense vectors"
        )
    if clique:
        raise SpecError(
            f"--top {top} is of an output's latest tuple, and in a clique of 3 streams or more the "
            "others must match too: give --join-graph star"
        )


def _check_basic_windows(
    names: Sequence[str], windows: Windows, settings: HarvestSettings, asked: object
) -> None:
    counts = basic_counts(windows, settings.basic_window)
    most = max(counts)
    if most > MOST_BASIC_WINDOWS:
        raise SpecError(
            f"--basic-window {asked} cuts the window of stream {names[counts.index(most)]} into "
            f"{most:,} basic windows, and {MOST_BASIC_WINDOWS:,} are the most: give a longer one, "
            "such as a tenth of the window"
        )
    if most == 1 and settings.throttle != 1:
        warn(
            f"no window is longer than --basic-window {asked}, so each is read whole or not at "
            "all: give a shorter one, such as a tenth of the windows"
        )


def _priors(
    profiles: Sequence[tuple[str, str, Path]], names: Sequence[str], windows: Windows, unit: str
) -> tuple[PairPrior, ...]:
    """Return what the files of profiles say.

    Parameters
    ----------
    profiles : sequence of (str, str, Path)
        Names of the streams that were left and right, and the file.
    names : sequence of str
        Of all streams.
    unit : str
        What a tick is.

    Raises
    ------
    SpecError
        If a file is no profile, or its ticks or windows are not those of the join.
    """
    found: list[PairPrior] = []
    for left, right, path in profiles:
        profile = ArrivalProfile.load(path)
        if profile.unit != unit:
            raise SpecError(
                f"profile {path} counts in ticks of {profile.unit}, the join in ticks of {unit}: "
                "profile the same columns of time"
            )
        pair = names.index(left), names.index(right)
        for stream, side, size in zip(pair, SIDES, profile.windows, strict=True):
            if size < windows.size[stream]:
                raise SpecError(
                    f"profile {path} has a window of {size} ticks on the {side}, stream "
                    f"{names[stream]} one of {windows.size[stream]}: profile windows as long"
                )
        if any({*pair} == {*own[:2]} for own in found):
            raise SpecError(f"there are two profiles of streams {left} and {right}: give one")
        found.append(
            PairPrior(
                *pair,
                (profile.rate(0), profile.rate(1)),
                profile.ticks,
                float(profile.exact["selectivity"]),
                *profile.correlation,
            )
        )
    return tuple(found)
