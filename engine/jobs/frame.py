"""A job's archives, opened and cut into lanes."""

from __future__ import annotations

from typing import NamedTuple

from engine.archives.roles import Roles, check_roles, check_streams
from engine.archives.source import Archive, open_archive
from engine.facts.roles import check_fact_roles
from engine.lanes.facts import FactInput
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare_cached
from engine.options.facts import FactOptions
from engine.options.replay import JobOptions
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.executors import Executor
from engine.runtime.jit import cache_home
from engine.runtime.stages import Stages
from engine.runtime.time_units import parse_instant, parse_window

ROWS_A_LANE = 2_000_000
MOST_LANES = 256
BYTES_A_ROW = 24
"""Of text, at least, to guess how long an archive is."""


class Opened(NamedTuple):
    """The archives of a job, checked, and the unit of their time.

    Attributes
    ----------
    left, right : Archive
    unit : str
        What one tick is.
    fact : FactInput or None
        What joins the streams, where their join attributes do not.
    """

    left: Archive
    right: Archive
    unit: str
    fact: FactInput | None = None

    def windows(self, options: JobOptions) -> tuple[int, int]:
        """Return W of left and right in ticks."""
        return (
            parse_window(options.window_left, self.unit, "left"),
            parse_window(options.window_right, self.unit, "right"),
        )

    def start_ts(self, options: JobOptions) -> int | None:
        """Return the first tick whose outputs count."""
        if options.start_ts is None:
            return None
        return parse_instant(options.start_ts, self.unit, "--start-ts")


def open_job(options: JobOptions) -> Opened:
    """Open both archives and check that their columns are what the options say.

    Raises
    ------
    WinnowError
        If an archive cannot be read or a column is not what it is said to be.
    """
    left, right = open_archive(options.left, "left"), open_archive(options.right, "right")
    streams = (left, options.left_roles), (right, options.right_roles)
    if options.fact is None:
        return Opened(left, right, check_roles(*streams[0], *streams[1]).unit)
    fact = open_facts(options.fact, streams)
    return Opened(left, right, check_streams(*streams[0], *streams[1]).unit, fact)


def open_facts(
    options: FactOptions, streams: tuple[tuple[Archive, Roles], tuple[Archive, Roles]]
) -> FactInput:
    """Open a fact relation and check that its columns can join the streams."""
    fact = open_archive(options.path, "fact")
    return FactInput(fact, options.roles, check_fact_roles(streams, fact, options.roles))


def prepare_job(
    options: JobOptions,
    opened: Opened,
    executor: Executor,
    stages: Stages,
    *,
    lanes: int,
    payload: bool,
    sorts: Wanted = ASKED_FOR_CPU,
) -> Prepared:
    """Return the archives as lanes, written now or found in the cache; `sorts` says where."""
    with stages.timed("prepare"):
        return prepare_cached(
            opened.left,
            opened.right,
            options.left_roles,
            options.right_roles,
            cache=options.cache or cache_home() / "lanes",
            lanes=lanes,
            bad_rows=options.bad_rows,
            payload=payload,
            executor=executor,
            progress=stages.progress,
            fact=opened.fact,
            sorts=sorts,
        )


def choose_lanes(options: JobOptions, archives: Opened) -> int:
    """Return the number of hash lanes: as told, 1 with a budget, else by the archives' size."""
    if options.lanes is not None:
        return options.lanes
    if not options.exact:
        return 1
    rows = sum(
        file.size // BYTES_A_ROW if file.rows is None else file.rows
        for archive in (archives.left, archives.right)
        for file in archive.files
    )
    return max(1, min(MOST_LANES, -(-rows // ROWS_A_LANE)))
