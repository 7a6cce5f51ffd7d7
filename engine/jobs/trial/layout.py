"""The cells of a trial: every candidate with every memory on each lane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.jobs.age_curves import Curves, curves_cut
from engine.jobs.capped import warn_of_capped
from engine.jobs.frame import Archives, JobLanes
from engine.jobs.lane_stats import lane_stats
from engine.jobs.split import LaneModels, lane_budgets, summaries_needed
from engine.jobs.sweep.cells import Cell, of_many_kinds
from engine.jobs.trial.candidates import Candidate, candidates_of
from engine.jobs.trial.curves import trial_curves
from engine.lanes.joint import Peaks
from engine.lanes.profile import LaneProfile
from engine.options.budget import EXPECTED, Amounts, Split
from engine.options.replay import JobOptions
from engine.policies import ValueKind
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError


class Place(NamedTuple):
    """A cell of the grid of a trial."""

    candidate: Candidate
    memory: int
    """The memory's place among those tried."""


class TrialLayout(NamedTuple):
    """The cells of a trial."""

    places: list[Place]
    """Of the cells, by their number."""
    cells: list[list[Cell]]
    """Of each lane, one a place."""
    profiles: list[LaneProfile]
    """Of each lane."""
    peaks: list[Peaks]
    """Of each group's lanes as one."""
    exact: ReplaySettings
    """By which the exact join is counted."""

    def only(self, wanted: Callable[[Place], bool]) -> TrialLayout:
        """Return the cells of some candidates and memories, both numbered anew."""
        kept = [number for number, place in enumerate(self.places) if wanted(place)]
        memories = sorted({self.places[number].memory for number in kept})
        places = [
            Place(self.places[number].candidate, memories.index(self.places[number].memory))
            for number in kept
        ]
        cells = [
            [own[old]._replace(number=new) for new, old in enumerate(kept)] for own in self.cells
        ]
        return self._replace(places=places, cells=cells)


def lay_out(
    base: JobOptions, memories: Sequence[Amounts], archives: Archives, lanes: JobLanes
) -> TrialLayout:
    """Return the cells of a trial of the candidates that `base` leaves open.

    Parameters
    ----------
    memories : sequence of Amounts
        What the memory of both sides may be; `base`'s is not looked at.
    """
    tried = [
        (Place(candidate, number), job)
        for number, memory in enumerate(memories)
        for candidate, job in candidates_of(replace(base, memory=memory))
    ]
    tried = [(place, job) for place, job in tried if _settings(archives, job) is not None]
    cells, profiles, peaks = cells_of([job for _, job in tried], archives, lanes)
    places = [place for place, _ in tried]
    return TrialLayout(places, cells, profiles, peaks, archives.settings(base))


def cells_of(
    jobs: Sequence[JobOptions],
    archives: Archives,
    lanes: JobLanes,
    *,
    given: Curves = (None, None),
) -> tuple[list[list[Cell]], list[LaneProfile], list[Peaks]]:
    """Return each lane's cells of replays, in their order, the lanes' profiles and groups' peaks.

    Parameters
    ----------
    jobs : sequence of JobOptions
        Of the same windows.
    given : (curve or None, curve or None)
        Age curves to go by in place of those measured.
    """
    settings = [archives.settings(job) for job in jobs]
    windows = settings[0].windows if settings else (0, 0)
    stats = lane_stats(
        lanes.files,
        lanes.stages,
        windows=[windows],
        kinds=_kinds(jobs, lanes),
        groups=lanes.groups,
    )
    profiles, peaks = stats.profiles[windows], stats.peaks[windows]
    for job in jobs[:1]:
        warn_of_capped(job, profiles)
    aged = next((own for own in settings if own.the_policy.name == "age"), None)
    curves = (None, None) if aged is None else trial_curves(aged, lanes, given)
    models = LaneModels(
        profiles, stats.summaries, curves, windows, through_facts=lanes.through_facts, peaks=peaks
    )
    cells: list[list[Cell]] = [[] for _ in lanes.files]
    spares = of_many_kinds(settings)
    known: dict[tuple[Amounts, Split, ValueKind], list[tuple[int, int]]] = {}
    for number, (job, own) in enumerate(zip(jobs, settings, strict=True)):
        by_value = job.memory, job.split, own.the_policy.value_kind
        if by_value not in known:
            known[by_value] = lane_budgets(
                job.memory, lanes.groups, models, own.the_policy, job.split
            )
        shape = curves_cut(curves, own) if own.the_policy.name == "age" else (None, None)
        for i, (budget, profile) in enumerate(zip(known[by_value], profiles, strict=True)):
            cells[i].append(Cell(number, own, budget, profile, shape, spares=spares))
    return cells, profiles, peaks


def _settings(archives: Archives, job: JobOptions) -> ReplaySettings | None:
    """Return the settings of a candidate, None where its windows rule it out."""
    try:
        return archives.settings(job)
    except SpecError:
        return None


def _kinds(jobs: Iterable[JobOptions], lanes: JobLanes) -> list[ValueKind]:
    """Return the kinds of value summaries that the candidates' memories are divided by."""
    found: set[ValueKind] = set()
    for job in jobs:
        frequencies = job.split == EXPECTED and job.policy != "age" and not lanes.through_facts
        found.update(
            summaries_needed(job.memory, lanes.groups, [job.the_policy], frequencies=frequencies)
        )
    return sorted(found)
