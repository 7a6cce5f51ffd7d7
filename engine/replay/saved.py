"""The state of a lane's replay: saved between two batches, and restored elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.policies import Structure
from engine.replay import decay, keyed, layout, tournament
from engine.replay.age_groups import build_trees
from engine.replay.lane import LaneReplay
from engine.replay.layout import Memory
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Ints
from engine.runtime.streams import SIDES

State: TypeAlias = dict[str, NDArray[Any]]
_ARRAYS = ("slots", "cells", "by_class", "value", "since", "log", "n")
_RANKED = ("table", "runs")
_SAME = "usual"
"""A field of `ValueModel` whose memory is that of another."""


class SavedReplay(LaneReplay):
    """A replay whose state can be saved between two batches and restored into a new one.

    What resumes from a state emits what the saved replay would have emitted, tuple for tuple,
    under every policy and however the streams are cut.

    Examples
    --------
    >>> from engine.lanes.profile import LaneProfile, SideProfile
    >>> from engine.replay.settings import ReplaySettings
    >>> from engine.runtime.streams import StreamBatch
    >>> side = SideProfile(2, 0, 5, 2, 1.0)
    >>> def fresh():
    ...     settings = ReplaySettings(9, 9, policy="recent")
    ...     return SavedReplay(settings, LaneProfile(side, side), (2, 2))
    >>> def at(t):
    ...     return StreamBatch(np.array([t]), np.array([t]), np.array([7]), np.array([1.0]))
    >>> ids = np.zeros(1, np.int32)
    >>> first, second = fresh(), fresh()
    >>> [out.ts.tolist() for out in first.push(at(0), ids, at(0), ids, 1)]
    [[0]]
    >>> second.restore(first.state(1))
    >>> [out.left_row.tolist() for out in second.push(at(5), ids, at(5), ids, 1)]
    [[5, 5, 0]]
    """

    def state(self, keys: int) -> State:
        """Return the state to resume from. O(most tuples held + keys + unexpired if counted).

        Parameters
        ----------
        keys : int
            Ids given out so far.

        Returns
        -------
        dict of str to array
            Views, valid until the next batch.

        Raises
        ------
        SpecError
            If the replay follows a plan or facts join its streams: what those remember of the lane
            is not part of it.
        """
        if self._plan is not None or self._facts:
            raise SpecError(
                "a replay that follows a plan, or whose streams facts join, has no state to go on "
                "from: replay the archives as a whole"
            )
        state: State = {
            "keys": self._keys[: 2 * keys],
            "by_key": self.by_key[:keys],
            "importance_by_key": self.importance_by_key[:keys],
            "by_bin": self.by_bin,
            "importance_by_bin": self.importance_by_bin,
            "progress": self._progress,
            "sums": self._sums,
        }
        if self._pool is not None:
            state |= {"pool_sums": self._pool.sums, "pool_n": self._pool.n}
        for side, memory, window in zip(SIDES, self._memories, self._windows, strict=True):
            begin = int(memory.n[layout.WINDOW_AT])
            own = _held(memory, self._structure) | {
                "window_ts": window.ts[begin:],
                "window_key": window.key[begin:],
            }
            state |= {f"{side}_{name}": array for name, array in own.items()}
        if self._estimate is not None:
            model = self._estimate.memory
            state |= {f"value_model_{n}": a for n, a in model._asdict().items() if n != _SAME}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a state; to be called before the first batch.

        Parameters
        ----------
        state : mapping of str to array
            Of a replay made with the same arguments.

        Raises
        ------
        SpecError
            If it is not of such a replay.
        """
        keys = state["by_key"].size
        self._grow(keys)
        _fill(self._keys, state, "keys")
        for name in ("by_key", "importance_by_key", "by_bin", "importance_by_bin"):
            _fill(getattr(self, name), state, name)
        _fill(self._progress, state, "progress")
        _fill(self._sums, state, "sums")
        if self._pool is not None:
            _fill(self._pool.sums, state, "pool_sums")
            _fill(self._pool.n, state, "pool_n")
        for side, memory, window in zip(SIDES, self._memories, self._windows, strict=True):
            for name in _changing(self._structure):
                _fill(getattr(memory, name), state, f"{side}_{name}")
            unused = memory.slots.size - int(memory.n[layout.PEAK])
            _fill(memory.free[unused:], state, f"{side}_free")
            if self._structure is Structure.VALUED:
                build_trees(memory)
            elif self._structure is Structure.DECAY:
                decay.rank(memory)
            elif self._structure is Structure.KEYED:
                keyed.rank(memory, self._keys, SIDES.index(side))
            elif memory.tree.size:
                tournament.rank(memory, self.rules.ties_by_importance)
            window.ts = np.array(state[f"{side}_window_ts"], np.int64)
            window.key = np.array(state[f"{side}_window_key"], np.int32)
        if self._estimate is not None:
            model = self._estimate.memory
            for name, array in model._asdict().items():
                if name != _SAME:
                    _fill(array, state, f"value_model_{name}")

    def held(self) -> tuple[Ints, Ints]:
        """Return the arrival numbers of the tuples in each join memory now, ascending."""
        left, right = (
            np.sort(memory.slots["seq"][memory.slots["seq"] != NONE]) for memory in self._memories
        )
        return left, right


def _changing(structure: Structure) -> tuple[str, ...]:
    """Return the arrays of a memory that change; its age tables do only under values."""
    return (*_ARRAYS, *_RANKED) if structure is Structure.VALUED else _ARRAYS


def _held(memory: Memory, structure: Structure) -> State:
    """Return a memory's arrays as far as they have ever been used.

    Slots and cells are given out from the first on and given out again when freed, so none beyond
    the most ever held has been touched.
    """
    n = memory.n.copy()
    n[layout.WINDOW_AT] = 0
    most = int(n[layout.PEAK])
    used = {
        "slots": most, "cells": layout.CELL_FLOATS * most,
        "value": layout.CELL * most, "since": layout.CELL * most,
        "log": int(n[layout.LOGGED]),
    }  # fmt: skip
    own = {name: getattr(memory, name)[: used.get(name)] for name in _changing(structure)}
    return own | {"n": n, "free": memory.free[memory.slots.size - most : int(n[layout.FREE])]}


def _fill(array: NDArray[Any], state: Mapping[str, NDArray[Any]], name: str) -> None:
    saved = state.get(name)
    fits = saved is not None and saved.dtype == array.dtype and saved.shape[1:] == array.shape[1:]
    if saved is None or not fits or len(saved) > len(array):
        raise SpecError(
            f"the state of a lane has no {name} that fits: it was saved by another version of "
            "winnow or with other settings; begin again, with a new checkpoint"
        )
    array[: len(saved)] = saved
