"""Results outlive what they come from: copies, other processes, interrupts."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from places import ROOT

import winnow

PLAIN = pa.table({"t": [1, 2], "k": ["a", "a"]})
JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 5}
TASKS: dict[str, Callable[..., Any]] = {
    "replay": lambda **more: winnow.replay(PLAIN, PLAIN, **JOIN, **more),
    "sample": lambda **more: winnow.sample(PLAIN, PLAIN, memory=9, **JOIN, **more),
    "bound": lambda **more: winnow.bound(PLAIN, PLAIN, memory=2, **JOIN, **more),
    "multijoin": lambda **more: winnow.multijoin(
        {"a": PLAIN, "b": PLAIN}, predicate="equi:k", time="t", window=5, **more
    ),
}
FORKED = """
import os, sys
import pyarrow as pa
import winnow

plain = pa.table({"t": [1, 2], "k": ["a", "a"]})
found = winnow.replay(plain, plain, on="k", time="t", window=5)
child = os.fork()
if not child:
    sys.exit(0)
os.waitpid(child, 0)
print(found.outputs.num_rows)
"""


def pickled(own: Any) -> Any:
    return pickle.loads(pickle.dumps(own))  # noqa: S301 - ours


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_copy_has_its_rows_when_the_original_is_gone(
    task: str, copied: Callable[[Any], Any]
) -> None:
    found = TASKS[task]()
    other = copied(found)
    rows, shown = found.outputs, str(found)
    del found
    assert other.outputs.equals(rows)
    assert pd.DataFrame.from_arrow(other).equals(rows.to_pandas())
    assert str(other) == shown
    assert "<table" in other._repr_html_()


def test_a_copy_of_what_was_counted_has_no_rows() -> None:
    other = copy.deepcopy(TASKS["replay"](count_only=True))
    assert other.report.exact.outputs == 4
    with pytest.raises(winnow.WinnowError, match="only counted"):
        _ = other.outputs


def test_a_copy_reads_from_the_folder_that_was_named(tmp_path: Path) -> None:
    found = pickle.dumps(TASKS["replay"](out=tmp_path / "out"))
    assert pickle.loads(found).outputs.num_rows == 4  # noqa: S301 - ours
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(winnow.WinnowError, match=r"out are not there any more: run it again$"):
        _ = pickle.loads(found).outputs  # noqa: S301 - ours


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_process_that_ends_leaves_the_rows() -> None:
    told = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert told.stdout.split() == ["4"]
