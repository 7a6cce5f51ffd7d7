"""One stream has an importance, the other none: the least of both is 1, and winnow warns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import winnow
from engine.commands import main
from engine.runtime.warned import WinnowWarning

LEFT = pa.table({"t": [0, 1, 2], "k": [1, 1, 2], "v": [9.0, 2.0, 4.0]})
RIGHT = pa.table({"t": [1, 2, 3], "k": [1, 1, 2], "v": [0.5, 0.25, 0.75]})
PAIR: dict[str, Any] = {"on": "k", "time": "t"}


@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("replay", {"window": 2}),
        ("replay", {"window": 2, "memory": 2}),
        ("sweep", {"windows": 2, "memory": 2, "policies": "simp"}),
        ("bound", {"window": 2, "memory": 2}),
        ("profile", {"window": 2}),
    ],
)
def test_python_is_told_once(task: str, given: dict[str, Any]) -> None:
    with pytest.warns(WinnowWarning) as told:
        getattr(winnow, task)(LEFT, RIGHT, left_importance="v", **PAIR, **given)
    (message,) = {str(one.message) for one in told}
    assert message == (
        "stream right has no importance, so each of its tuples has 1, and combine min makes 1 of "
        "all above it, though the mean of stream left is 5: give combine product for the "
        "importance of stream left as it is, or max or sum"
    )


def test_a_command_tells_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, table in (("left", RIGHT), ("right", LEFT)):
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
    line = (
        f"replay --left {tmp_path}/left.parquet --right {tmp_path}/right.parquet --on k --time t"
        f" --right-importance v --window 2 --memory 2 --engine local --cache {tmp_path}/lanes"
    )
    assert main(line.split()) == 0
    warned = [own for own in capsys.readouterr().err.splitlines() if "warning" in own]
    assert len(warned) == 1
    assert warned[0].startswith("winnow replay: warning: stream left has no importance, so ")
    assert "give --combine product for the importance of stream right" in warned[0]


@pytest.fixture
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    "given",
    [
        {"importance": "v"},
        {},
        {"left_importance": "v", "combine": "product"},
        {"right_importance": "v"},
    ],
)
@pytest.mark.usefixtures("no_warning")
def test_others_are_told_nothing(given: dict[str, Any]) -> None:
    found = winnow.replay(LEFT, RIGHT, window=2, memory=6, policy="simp", **PAIR, **given)
    assert found.report.exact.outputs == 5
