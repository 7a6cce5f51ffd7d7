"""What is said of frames that cannot be joined: in words of the frame, not of files made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.runtime.errors import InputError

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 1}
TASKS: dict[str, Callable[..., Any]] = {
    "replay": lambda *own, **more: winnow.replay(*own, **JOIN, **more),
    "profile": lambda *own, **more: winnow.profile(*own, **JOIN, **more),
    "bound": lambda *own, **more: winnow.bound(*own, memory=2, **JOIN, **more),
    "sample": lambda *own, **more: winnow.sample(*own, memory=2, **JOIN, **more),
    "sweep": lambda *own, **more: winnow.sweep(*own, memory=2, policies="prob", **JOIN, **more),
    "estimate": lambda *own, **more: winnow.estimate(*own, **JOIN, **more),
}
PLAIN = pa.table({"t": [1, 2], "k": [1, 2]})


@pytest.mark.parametrize("name", TASKS)
def test_two_columns_of_one_name_are_refused(name: str) -> None:
    twice = pa.table([[1, 2], [1, 2], [5, 6]], names=["t", "k", "k"])
    for sides, side in (((twice, PLAIN), "left"), ((PLAIN, twice), "right")):
        with pytest.raises(InputError, match=rf"^{side} table has more than one column k: rename"):
            TASKS[name](*sides)


def seconds(zone: str | None) -> pa.Table:
    return pa.table({"t": pa.array([1, 2], pa.timestamp("s", zone)), "k": [1, 2]})


@pytest.mark.parametrize("name", TASKS)
def test_types_are_those_of_the_frames(name: str) -> None:
    said = (
        r"left archive \(timestamp\[s, tz=UTC\]\) and t of the right \(timestamp\[s\]\): only one"
    )
    with pytest.raises(InputError, match=said):
        TASKS[name](seconds("UTC"), seconds(None))
    for cells, kind in (
        (pa.array([1, 2], pa.timestamp("s")), r"timestamp\[s\]"),
        (pa.array([[1], [2]]), "list<item: int64>"),
    ):
        with pytest.raises(InputError, match=rf"column k of the left archive \({kind}\)"):
            TASKS[name](PLAIN.set_column(1, "k", cells), PLAIN)
    with pytest.raises(InputError, match=r"right archive \(timestamp\[s\]\): they are not of one"):
        TASKS[name](PLAIN, PLAIN.set_column(1, "k", seconds(None)["t"]))


def test_types_of_facts_are_those_of_their_frame() -> None:
    fact = pa.table({"x": seconds(None)["t"], "y": [1, 2]})
    with pytest.raises(InputError, match=r"column x of the fact archive \(timestamp\[s\]\)"):
        winnow.replay(PLAIN, PLAIN, fact=fact, fact_left="x", fact_right="y", **JOIN)


def test_a_frame_beside_a_file_has_its_types(tmp_path: Path) -> None:
    pq.write_table(PLAIN, tmp_path / "right.parquet")
    with pytest.raises(InputError, match=r"left archive \(timestamp\[s\]\) and t of the right"):
        winnow.replay(seconds(None), tmp_path / "right.parquet", **JOIN)
