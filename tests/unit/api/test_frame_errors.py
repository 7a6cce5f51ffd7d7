"""What is said of frames that cannot be joined: in words of the frame, not of files made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
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
