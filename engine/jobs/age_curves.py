"""What a replay needs of a prepared archive before its lanes run: files, age curves, worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.lanes.lane import LaneFiles
from engine.lanes.manifest import Lane, Prepared
from engine.options.budget import Amounts
from engine.policies import Policy, ValueKind, age
from engine.replay.settings import ReplaySettings, number_of
from engine.value_model.summary import SUMMARISED

Curves = tuple[tuple[float, ...] | None, tuple[float, ...] | None]


def lanes_to_replay(prepared: Prepared) -> list[Lane]:
    """Return the lanes that have rows on either side."""
    return [lane for lane in prepared.lanes if any(side.rows for side in lane.sides)]


def lane_files(prepared: Prepared, lane: Lane, access: str) -> LaneFiles:
    """Return where a lane lies, and its facts, to be found by an access method."""
    number = lane.number
    facts = prepared.fact_file(access)
    sides = prepared.stream(number, 0), prepared.stream(number, 1)
    rows = sum(side.rows for side in lane.sides)
    return LaneFiles(number, prepared.lane_folder(number), rows, *sides, facts)


def groups_of(prepared: Prepared, lanes: Sequence[Lane]) -> list[list[int]]:
    """Return the places of each group's lanes: a group is a join with a budget of its own."""
    groups: dict[int, list[int]] = {}
    for i, lane in enumerate(lanes):
        groups.setdefault(lane.number // prepared.lanes_per_group, []).append(i)
    return list(groups.values())


def worths_needed(
    memory: Amounts,
    groups: Sequence[Sequence[int]],
    policies: Iterable[Policy],
    *,
    frequencies: bool = False,
) -> list[ValueKind]:
    """Return the kinds of worth that lanes have to be summarised by before they get budgets.

    Parameters
    ----------
    memory : tuple of Amount or None
    groups : sequence
        As `groups_of` returns them.
    policies : iterable of Policy
    frequencies : bool
        Whether the frequency model is asked for.
    """
    needed = {ValueKind.COUNT} if frequencies else set()
    if memory != (None, None) and any(len(group) > 1 for group in groups):
        needed |= {policy.value_kind for policy in policies}
    return sorted(needed & set(SUMMARISED))


def curves_given(settings: ReplaySettings) -> Curves:
    """Return AGE's curves as they were given: None where one has to be measured."""
    both = settings.parameters["curve"]
    left, right = (settings.parameters[f"curve_{side}"] or both for side in ("left", "right"))
    return left, right  # type: ignore[return-value]


def curves_cut(curves: Curves, settings: ReplaySettings) -> Curves:
    """Return AGE's curves as its memories take them: cut finer, but those that were given.

    A curve that was given stays as it is unless the parameter grain says otherwise.
    """
    grain = settings.parameters["grain"]
    cut = list(curves)
    for side, (curve, given, window) in enumerate(
        zip(
            curves,
            curves_given(settings),
            (settings.window_left, settings.window_right),
            strict=True,
        )
    ):
        if curve is not None and (grain is not None or given is None):
            cut[side] = age.refined(curve, window, None if grain is None else int(number_of(grain)))
    return cut[0], cut[1]
