"""The frame of a job on two streams: its archives are opened, checked and cut into lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from engine.archives.roles import Roles, check_roles, check_streams, stated_unit, zone_of
from engine.archives.source import Archive, open_archive
from engine.facts.roles import FactRoles, check_fact_roles
from engine.lanes.facts import FactInput
from engine.lanes.manifest import Lane, Prepared
from engine.lanes.prepare import prepare_cached
from engine.lanes.reader import LaneFiles
from engine.options.budget import POOLED
from engine.options.replay import JobOptions
from engine.replay.settings import ReplaySettings
from engine.runtime.cache_folders import LANES, cache_home
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.executors import Stages
from engine.runtime.short_windows import warn_of_short_windows
from engine.runtime.time_units import parse_instant, parse_window
from engine.runtime.work import mapped

ROWS_A_LANE = 2_000_000
MOST_LANES = 256
BYTES_A_ROW = 24
"""Of text, at least, to guess how long an archive is."""


class Archives(NamedTuple):
    """The archives of a job, checked, and the unit of their time."""

    left: Archive
    right: Archive
    unit: str
    """What one tick is."""
    fact: FactInput | None = None
    """The fact relation through which the streams join; None for an equi-join."""
    zone: str | None = None
    """Time zone of the left stream's times."""

    @property
    def opened(self) -> tuple[Archive, ...]:
        """Left, right, and that of the facts, where there are any."""
        return self[:2] if self.fact is None else (*self[:2], self.fact.archive)

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
        return parse_instant(options.start_ts, self.unit, "--start-ts", self.zone)

    def settings(
        self, options: JobOptions, windows: tuple[int, int] | None = None, seed: int | None = None
    ) -> ReplaySettings:
        """Return the settings of a replay; windows in ticks and seed are the options' own if None.

        Raises
        ------
        SpecError
            If an option is invalid.
        """
        return ReplaySettings(
            *(windows or self.windows(options)),
            policy=options.the_policy,
            parameters=options.parameters,
            estimator=options.estimator,
            probe=options.probe,
            combine=options.combine,
            start_ts=self.start_ts(options),
            seed=options.seed if seed is None else seed,
            pooled=options.split == POOLED and options.plan is None,
        )


def open_job(options: JobOptions) -> Archives:
    """Open both archives and check that their columns are what the options say.

    Raises
    ------
    WinnowError
        If an archive cannot be read or a column is not what it is said to be.
    """
    given = [(options.left, "left"), (options.right, "right")]
    if options.fact is not None:
        given.append((options.fact.path, "fact"))
    # a long footer takes milliseconds
    left, right, *fact = mapped(lambda own: open_archive(*own), given, len(given))
    return checked(options, left, right, fact[0] if fact else None)


def checked(options: JobOptions, left: Archive, right: Archive, facts: Archive | None) -> Archives:
    """Check that columns of archives are what the options say; raises as `open_job` does."""
    streams = (left, options.left_roles), (right, options.right_roles)
    if options.fact is None or facts is None:
        fact, unit = None, check_roles(*streams[0], *streams[1]).unit
    else:
        fact = facts_of(facts, options.fact.roles, streams)
        unit = check_streams(*streams[0], *streams[1]).unit
    zone = zone_of(left, options.left_roles.time)
    return Archives(left, right, stated_unit(unit, options.time_unit), fact, zone)


def facts_of(
    facts: Archive, roles: FactRoles, streams: tuple[tuple[Archive, Roles], tuple[Archive, Roles]]
) -> FactInput:
    """Check that the columns of a fact relation can join the streams."""
    return FactInput(facts, roles, check_fact_roles(streams, facts, roles))


@dataclass(frozen=True)
class JobLanes:
    """The lanes of a job that have rows, and what runs their tasks."""

    prepared: Prepared
    stages: Stages
    access: str = ""
    """The method by which facts are found, where they join the streams."""

    @cached_property
    def lanes(self) -> list[Lane]:
        """The lanes that have rows on either side, by number."""
        return [lane for lane in self.prepared.lanes if any(side.rows for side in lane.sides)]

    @cached_property
    def files(self) -> list[LaneFiles]:
        """Where each of them lies, and its facts."""
        prepared, facts = self.prepared, self.prepared.fact_file(self.access)
        return [
            LaneFiles(
                lane.number,
                prepared.lane_folder(lane.number),
                sum(side.rows for side in lane.sides),
                prepared.stream(lane.number, 0),
                prepared.stream(lane.number, 1),
                facts,
            )
            for lane in self.lanes
        ]

    @property
    def rows(self) -> list[int]:
        """Tuples of both sides of each of them."""
        return [one.rows for one in self.files]

    @cached_property
    def groups(self) -> list[list[int]]:
        """Their places by partition group: a join with a budget of its own."""
        groups: dict[int, list[int]] = {}
        for i, lane in enumerate(self.lanes):
            groups.setdefault(lane.number // self.prepared.lanes_per_group, []).append(i)
        return list(groups.values())

    @property
    def through_facts(self) -> bool:
        """Whether facts join the streams."""
        return self.prepared.facts is not None


def prepare_job(
    options: JobOptions,
    archives: Archives,
    stages: Stages,
    *,
    lanes: int | None = None,
    payload: bool = False,
    sorts: Wanted = ASKED_FOR_CPU,
) -> JobLanes:
    """Return the archives as lanes, written now or found in the cache.

    Parameters
    ----------
    lanes : int, optional
        Hash lanes of each partition group; by default as many as the options say, else 1.
    payload : bool
        Whether lanes hold every source column.
    sorts : Wanted
        The device that sorts rows.
    """
    with stages.timed("prepare"):
        prepared = prepare_cached(
            archives.left,
            archives.right,
            options.left_roles,
            options.right_roles,
            cache=options.cache or cache_home() / LANES,
            lanes=lanes or options.lanes or 1,
            bad_rows=options.bad_rows,
            payload=payload,
            executor=stages.executor,
            progress=stages.progress,
            fact=archives.fact,
            sorts=sorts,
        )
    prepared = replace(prepared, unit=archives.unit, zone=archives.zone)  # lanes hold ticks alone
    given = {"left": options.window_left, "right": options.window_right}
    rows = sum(own.joined for own in prepared.streams)
    warn_of_short_windows(given, (archives.unit, options.time_unit), rows, prepared.span)
    return JobLanes(prepared, stages, options.fact_access)


def choose_lanes(options: JobOptions, archives: Archives) -> int:
    """Return the number of hash lanes: as given, 1 with a budget, else by the archives' size."""
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
