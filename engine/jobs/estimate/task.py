"""The exact join of a stretch as a task: what it comes to, by aggregate and group."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from engine.archives.roles import JoinColumns, Roles
from engine.archives.stretches import FileGroups, read_stretch
from engine.jobs.estimate.facts import side_of
from engine.jobs.estimate.outputs import Pairs, StretchOutputs
from engine.jobs.estimate.sums import Sums, sums_of
from engine.lanes.facts import FactRelation
from engine.runtime.streams import SIDES
from engine.sampling.aggregates import AggregateSpec


@dataclass(frozen=True)
class Recipe(ABC):
    """What all stretches of a job have in common."""

    windows: tuple[int, ...]
    """Ticks, by stream."""
    combine: str
    specs: tuple[AggregateSpec, ...]
    """Resolved."""
    kinds: tuple[tuple[pa.DataType, ...], ...]
    """Of the columns that each of them groups by."""
    quarantine: bool
    """Whether rows with a wrong importance are left out, instead of being an error."""

    def columns(self, stream: int) -> tuple[str, ...]:
        """Return the columns of a stream that aggregates read."""
        used = [column for spec in self.specs for column in spec.columns]
        return tuple(dict.fromkeys(own.column for own in used if own.side == stream))

    @abstractmethod
    def join(self, task: StretchTask) -> tuple[StretchOutputs, int]:
        """Read a stretch; return its outputs, and how many rows were set aside."""


@dataclass(frozen=True)
class StretchTask:
    """A stretch to be joined."""

    place: int
    """Of its first slice."""
    first: int
    last: int
    """`first`, `last`: Ticks in which its outputs lie."""
    files: tuple[tuple[FileGroups, ...], ...]
    """By stream, row groups that have its tuples, and those of the window before it."""
    recipe: Recipe
    read: dict[str, int]
    """Bytes, row groups and rows that these are."""


class Joined(NamedTuple):
    """What a stretch came to."""

    place: int
    sums: list[Sums]
    """By aggregate."""
    rejected: int
    seconds: float
    tuples: int
    """Of the stretch and the window before it."""


def join_stretch(task: Any) -> Joined:  # noqa: ANN401 - a StretchTask; plans differ in theirs
    """Read a stretch and join it exactly."""
    begun = time.perf_counter()
    recipe = task.recipe
    outputs, rejected = recipe.join(task)
    sums = sums_of(outputs, recipe.specs, recipe.kinds)
    return Joined(task.place, sums, rejected, time.perf_counter() - begun, sum(outputs.sizes))


@dataclass(frozen=True)
class PairRecipe(Recipe):
    """Two streams that share their join attribute, or that facts join."""

    roles: tuple[Roles, Roles]
    joined: tuple[JoinColumns, JoinColumns]
    facts: FactRelation | None = None

    def join(self, task: StretchTask) -> tuple[StretchOutputs, int]:
        """Read a stretch; return its outputs, and how many rows were set aside."""
        left, right = (
            read_stretch(
                task.files[side], name, self.roles[side], self.joined[side], self.columns(side),
                (task.first - self.windows[side], task.last), quarantine=self.quarantine,
                met=None if self.facts is None else side_of(self.facts, side),
            )
            for side, name in enumerate(SIDES)
        )  # fmt: skip
        windows = self.windows[0], self.windows[1]
        pairs = Pairs((left, right), windows, self.combine, task.first)
        return pairs, left.rejected + right.rejected
