"""What a lane's exact join comes to, kept beside its files.

Replays by other policies or budgets, within the same windows, need not count it again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.exact.key_totals import COUNTS, REMEMBERED
from engine.replay.settings import ReplaySettings
from engine.runtime.disk import whole_file
from engine.runtime.jit import source_digest

_FORMAT = 1
_OF_KEYS = ("code", "side", "row", "exact", "exact_importance")


class Tally(NamedTuple):
    """Counted outputs and their importance, also by time bin."""

    outputs: int
    importance: float
    by_bin: NDArray[np.int64]
    importance_by_bin: NDArray[np.float64]


class Counted(NamedTuple):
    """A lane's exact join.

    Attributes
    ----------
    tally : Tally
    keys : (n,) COUNTS
        Every key with an output, by code.
    """

    tally: Tally
    keys: NDArray[np.void]


class CountedFile:
    """Where the exact join of a lane under some settings is kept.

    Parameters
    ----------
    folder : Path
        The lane's own.
    settings : ReplaySettings
        Of which only the windows, the first tick and the importance of an output matter.
    bin_edges : sequence of int
    """

    def __init__(self, folder: Path, settings: ReplaySettings, bin_edges: Sequence[int]) -> None:
        asked = (
            _FORMAT, settings.window_left, settings.window_right, settings.combine,
            settings.start_ts, tuple(bin_edges),
        )  # fmt: skip
        mark = hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
        self._path = folder / f"exact-{mark}-{source_digest()}.npz"

    @property
    def lacking(self) -> bool:
        """Whether nothing was kept, not even broken, and it can be."""
        return not self._path.exists() and os.access(self._path.parent, os.W_OK)

    def read(self) -> Counted | None:
        """Return what was kept, None where there is nothing or it is broken."""
        try:
            with self._path.open("rb") as file, np.load(file) as kept:
                keys = np.zeros(len(kept["code"]), COUNTS)
                for name in _OF_KEYS:
                    keys[name] = kept[name]
                tally = Tally(
                    int(kept["outputs"]), float(kept["importance"]), kept["by_bin"],
                    kept["importance_by_bin"],
                )  # fmt: skip
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return Counted(tally, keys)

    def write(self, counted: Counted) -> None:
        """Keep it, the keys in any order, unless they are too many or the folder is read-only."""
        if counted.keys.size > REMEMBERED:
            return
        order = np.argsort(counted.keys["code"])
        arrays: dict[str, Any] = {name: counted.keys[name][order] for name in _OF_KEYS}
        arrays |= counted.tally._asdict()
        with (
            suppress(OSError),
            whole_file(self._path, self._path.parent) as own,
            own.open("wb") as file,
        ):
            np.savez(file, **arrays)
