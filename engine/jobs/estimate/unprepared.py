"""Two archives as one lane that nobody has written: about sorted by time, read as they lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.archives.canonical import LANE_SEED
from engine.archives.footers import may_lack
from engine.archives.roles import JoinColumns, Roles
from engine.archives.stretches import RowGroups
from engine.jobs.frame import Archives, JobLanes
from engine.jobs.lane_stats import lane_stats
from engine.lanes.facts import FactRelation
from engine.lanes.manifest import Lane, LaneSide, Prepared, StreamSummary
from engine.lanes.profile import SideProfile
from engine.lanes.reader import LaneFiles
from engine.lanes.unwritten import Unwritten
from engine.runtime.executors import Stages
from engine.runtime.storage.uris import Place


@dataclass(frozen=True)
class ArchiveLane(JobLanes):
    """The only lane of a job."""

    streams: tuple[Unwritten, ...] = ()
    """Left and right."""

    @cached_property
    def files(self) -> list[LaneFiles]:
        """The archives."""
        return [_files(self.prepared.folder, self.streams)]


def _files(folder: Place, streams: tuple[Unwritten, ...]) -> LaneFiles:
    left, right = streams
    rows = sum(int(own.groups.rows.sum()) for own in streams)
    return LaneFiles(0, folder, rows, left, right, left.facts)


def archive_lane(
    archives: Archives,
    roles: tuple[Roles, Roles],
    joined: tuple[JoinColumns, JoinColumns],
    groups: tuple[RowGroups, RowGroups],
    windows: tuple[int, int],
    stages: Stages,
    folder: Path,
    *,
    quarantine: bool,
    facts: FactRelation | None = None,
) -> ArchiveLane:
    """Return two archives as a lane; their times and importances are read for it.

    Parameters
    ----------
    windows : (int, int)
        Within which peaks are found.
    folder : Path
        Where what is found out is kept; until the job ends.
    quarantine : bool
        Whether rows with a wrong importance are left out.
    facts : FactRelation, optional
        What joins both sides, if their join attributes do not.
    """
    streams = tuple(
        Unwritten(archive, own, role, kinds, quarantine, may_lack(archive, role.on), facts)
        for archive, own, role, kinds in zip(archives[:2], groups, roles, joined, strict=True)
    )
    stats = lane_stats([_files(folder, streams)], stages, windows=[windows])
    [profile] = stats.profiles[windows]
    left, right = (_summary(*own) for own in zip(groups, profile, roles, strict=True))
    sides = (
        LaneSide(left.joined, left.first_ts, left.last_ts),
        LaneSide(right.joined, right.first_ts, right.last_ts),
    )
    prepared = Prepared(
        folder, "", archives.unit, 1, 1, payload=False, seed=LANE_SEED,
        keys=tuple(str(kind) for kind in joined[0].keys), streams=(left, right),
        lanes=(Lane(0, (), sides),), zone=archives.zone,
        facts=None if facts is None else facts.summary,
    )  # fmt: skip
    return ArchiveLane(prepared, stages, streams=streams)


def _summary(groups: RowGroups, profile: SideProfile, roles: Roles) -> StreamSummary:
    """Return what an archive comes to; rows that are set aside count as those without keys."""
    rows = int(groups.rows.sum())
    return StreamSummary(
        rows=rows,
        joined=profile.rows,
        null_keys=rows - profile.rows,
        rejected=0,
        sorted=True,
        first_ts=profile.first_ts if profile.rows else None,
        last_ts=profile.last_ts if profile.rows else None,
        on=roles.on,
    )
