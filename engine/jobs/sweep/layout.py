"""The cells of a sweep on every lane: the memory, age curves and sampling of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.jobs.age_curves import Curves, curves_cut, curves_given, measured_curves
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import lane_stats
from engine.jobs.prior import PriorProfile
from engine.jobs.split import LaneModels, lane_budgets, summaries_needed, warn_of_no_memory
from engine.jobs.sweep.cells import Cell, Exact, of_many_kinds
from engine.jobs.sweep.sampled import sample_groups, samplings
from engine.lanes.joint import Peaks
from engine.models.frequency import FrequencyModel
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import EXPECTED
from engine.options.cells import Point
from engine.replay.common import TUPLES
from engine.replay.settings import ReplaySettings, number_of
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place

Settings = Mapping[int, ReplaySettings]
"""Of the points of the grid, by their numbers."""


class Layout(NamedTuple):
    """The cells of a sweep."""

    cells: list[list[Cell]]
    """Of each lane, one a point of the grid."""
    exact: dict[int, list[Exact]]
    """By window, the exact join of each lane where measuring age
    curves has counted it."""
    peaks: dict[int, list[Peaks]]
    """By window, of each group's lanes as one."""


def profile_given(path: Place | None, points: Sequence[Point]) -> ArrivalProfile | None:
    """Return the profile that a sweep is given, None where it is given none.

    Raises
    ------
    WinnowError
        If no point would use it, or it cannot be read.
    """
    if path is None:
        return None
    profile = ArrivalProfile.load(path)
    if all(point.policy != "age" and point.split != EXPECTED for point in points):
        raise SpecError(
            "--profile tells the curves of policy age and the frequencies for the split expected: "
            "name one in --policies or --splits"
        )
    return profile


def lay_out(
    points: Sequence[Point],
    settings: Settings,
    lanes: JobLanes,
    profile: ArrivalProfile | None,
) -> Layout:
    """Profile the lanes and settle every cell on each.

    Parameters
    ----------
    profile : ArrivalProfile or None
        Of another time, whose age curves AGE goes by, and whose frequencies a split as expected.
    """
    windows = list(dict.fromkeys(point.window for point in points))
    policies = [own.the_policy for own in settings.values()]
    by_frequency = {
        point.window: settings[point.number]
        for point in points
        if point.split == EXPECTED and point.policy != "age"
    }
    frequencies: dict[int, FrequencyModel] = {}
    if profile is not None:
        frequencies = {
            window: PriorProfile(profile, lanes.prepared, own).frequencies()
            for window, own in by_frequency.items()
        }
    kinds = summaries_needed(
        points[0].amounts, lanes.groups, policies,
        frequencies=bool(by_frequency) and profile is None,
    )  # fmt: skip
    pairs = [(window, window) for window in windows]
    stats = lane_stats(lanes.files, lanes.stages, windows=pairs, kinds=kinds, groups=lanes.groups)
    curves, exact = _curves(points, settings, lanes, profile)
    shapes: dict[int, Curves] = {
        point.number: curves[point.window] if point.policy == "age" else (None, None)
        for point in points
    }
    budgets = {}
    for point in points:
        pair = point.window, point.window
        models = LaneModels(
            stats.profiles[pair], stats.summaries, shapes[point.number], pair,
            frequencies.get(point.window), lanes.through_facts, stats.peaks[pair],
        )  # fmt: skip
        warn_of_no_memory(point.amounts, point.split, models.peaks)
        policy = settings[point.number].the_policy
        budgets[point.number] = lane_budgets(
            point.amounts, lanes.groups, models, policy, point.split
        )
    groups = sample_groups(lanes.groups, stats.profiles[pairs[0]])
    chosen = samplings(points, settings, budgets, groups, lanes)
    cells: list[list[Cell]] = [[] for _ in lanes.files]
    several = of_many_kinds(settings.values())
    for point in points:
        number, own, shape = point.number, settings[point.number], shapes[point.number]
        if point.policy == "age":
            shape = curves_cut(shape, own)
        for i, one in enumerate(stats.profiles[point.window, point.window]):
            sampling = chosen.get((number, i))
            spares = True if several and one.rows <= TUPLES else None
            cell = Cell(number, own, budgets[number][i], one, shape, sampling, spares=spares)
            cells[i].append(cell)
    return Layout(cells, exact, {pair[0]: own for pair, own in stats.peaks.items()})


def _curves(
    points: Sequence[Point],
    settings: Settings,
    lanes: JobLanes,
    profile: ArrivalProfile | None,
) -> tuple[dict[int, Curves], dict[int, list[Exact]]]:
    """Return AGE's curves by window, and the exact counts that measuring them gave."""
    aged = {point.window: settings[point.number] for point in points if point.policy == "age"}
    curves, exact = {}, {}
    for window, own in aged.items():
        given = curves_given(own)
        if profile is not None:
            given = PriorProfile(profile, lanes.prepared, own).curves(given)
        if None in given:
            buckets = int(number_of(own.parameters["buckets"]))
            given, counted = measured_curves(given, lanes, own, buckets)
            exact[window] = [Exact(one.outputs, one.importance) for one in counted]
        curves[window] = given
    return curves, exact
