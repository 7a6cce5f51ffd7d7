"""An exact join without outputs is warned of, as a result of none of it is all of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from job_cases import arguments, streams

import winnow
from engine.commands import main
from engine.runtime.warned import WinnowWarning

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 2}
STREAM = pa.table({"k": [1, 2], "t": [3, 5]})
JOBS: dict[str, Callable[..., Any]] = {
    "replay": winnow.replay,
    "sweep": lambda *sides, **given: winnow.sweep(*sides, memory=2, policies="dgl", **given),
    "bound": lambda *sides, **given: winnow.bound(*sides, memory=2, **given),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("right", "given", "said"),
    [
        (STREAM, {"start_ts": 99}, r"times 3 to 5, has .*: check the join .*, window and start_ts"),
        (STREAM.set_column(0, "k", pa.array([8, 9])), {}, "check the join attributes"),
        (
            STREAM.set_column(1, "t", pa.array([3000, 5000])), {},
            "times 3000 to 5000, has no outputs.* do not overlap: check the time columns",
        ),
    ],
    ids=["start", "keys", "times"],
)  # fmt: skip
def test_what_to_check_is_said(job: str, right: pa.Table, given: dict[str, Any], said: str) -> None:
    with pytest.warns(WinnowWarning, match=said):
        JOBS[job](STREAM, right, **JOIN, **given)


@pytest.mark.parametrize("given", [{"reference": "none", "memory": 2, "policy": "dgl"}, {}])
def test_it_is_not_said_of_what_is_not_counted_or_has_no_rows(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        winnow.replay(STREAM, STREAM if given else STREAM.slice(0, 0), **JOIN, start_ts=99, **given)


def test_the_command_line_says_it_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams(tmp_path)
    assert main(arguments(tmp_path, start_ts=999)) == 0
    assert "warning: the exact join of left" in " ".join(capsys.readouterr().err.split())


def test_an_exact_join_of_nothing_has_no_limit_of_memory() -> None:
    nothing = STREAM.slice(0, 0)
    memory = winnow.replay(nothing, nothing, **JOIN).report["memory"]
    assert [memory[name] for name in ("left", "right", "both")] == [None] * 3
