"""The exact join of a stretch as a task: what it comes to, by aggregate and group."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from engine.archives.roles import JoinColumns, Roles
from engine.archives.stretches import FileGroups, StretchTuples, read_stretch
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
    def read(self, task: StretchTask) -> tuple[Sequence[Any], int]:
        """Read a stretch; return the tuples by stream, and how many rows were set aside."""

    @abstractmethod
    def outputs(self, tuples: Sequence[Any], first: int, last: int) -> StretchOutputs:
        """Return the outputs from one tick to another, of tuples that were read."""

    def sums(self, tuples: Sequence[Any], place: int, first: int, last: int) -> Joined:
        """Return what a stretch comes to; `tuples` are its own, and may be more."""
        begun = time.perf_counter()
        outputs = self.outputs(tuples, first, last)
        sums = sums_of(outputs, self.specs, self.kinds)
        return Joined(place, sums, 0, time.perf_counter() - begun, sum(outputs.sizes))


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


@dataclass(frozen=True)
class TogetherTask:
    """Stretches that are read at once, and joined one by one."""

    whole: StretchTask
    """All of them."""
    parts: tuple[tuple[int, int, int], ...]
    """Place of the first slice of each, and its first and last tick."""

    @property
    def read(self) -> dict[str, int]:
        """Bytes, row groups and rows that it reads."""
        return self.whole.read


class Joined(NamedTuple):
    """What a stretch came to."""

    place: int
    sums: list[Sums]
    """By aggregate."""
    rejected: int
    seconds: float
    tuples: int
    """Of the stretch and the window before it."""


class Together(NamedTuple):
    """What stretches came to that were read at once."""

    joined: list[Joined]
    rejected: int
    seconds: float
    rows: int
    """That were read."""


def join_stretch(task: Any) -> Joined:  # noqa: ANN401 - a StretchTask; plans differ in theirs
    """Read a stretch and join it exactly."""
    begun = time.perf_counter()
    tuples, rejected = task.recipe.read(task)
    found: Joined = task.recipe.sums(tuples, task.place, task.first, task.last)
    return found._replace(rejected=rejected, seconds=time.perf_counter() - begun)


def join_together(task: TogetherTask) -> Together:
    """Read stretches at once and join each of them exactly."""
    begun, recipe = time.perf_counter(), task.whole.recipe
    tuples, rejected = recipe.read(task.whole)
    found = [recipe.sums(tuples, *part) for part in task.parts]
    return Together(found, rejected, time.perf_counter() - begun, task.read["rows"])


@dataclass(frozen=True)
class PairRecipe(Recipe):
    """Two streams that share their join attribute, or that facts join."""

    roles: tuple[Roles, Roles]
    joined: tuple[JoinColumns, JoinColumns]
    facts: FactRelation | None = None

    def read(self, task: StretchTask) -> tuple[Sequence[StretchTuples], int]:
        """Read a stretch; return the tuples by stream, and how many rows were set aside."""
        found = [
            read_stretch(
                task.files[side], name, self.roles[side], self.joined[side], self.columns(side),
                (task.first - self.windows[side], task.last), quarantine=self.quarantine,
                met=None if self.facts is None else side_of(self.facts, side),
            )
            for side, name in enumerate(SIDES)
        ]  # fmt: skip
        return found, sum(own.rejected for own in found)

    def outputs(self, tuples: Sequence[Any], first: int, last: int) -> StretchOutputs:
        """Return the outputs from one tick to another, of tuples that were read."""
        return pairs_between(self, tuples, first, last)


def pairs_between(recipe: Recipe, tuples: Sequence[StretchTuples], first: int, last: int) -> Pairs:
    """Return the outputs of two streams' tuples from one tick to another."""
    windows = recipe.windows[0], recipe.windows[1]
    left, right = (
        own.between(first - window, last) for own, window in zip(tuples, windows, strict=True)
    )
    return Pairs((left, right), windows, recipe.combine, first)
