"""Lanes sorted by cuDF: the same files. pandas stands in for cuDF, whose words it shares."""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fake_cupy import fake_cupy
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_cases import drawn, write

from engine.archives.roles import Roles
from engine.archives.source import open_archive
from engine.lanes import placing
from engine.lanes.placing import lane_order, sorted_by_cudf, sorting_device
from engine.lanes.prepare import prepare
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.errors import DeviceError
from engine.runtime.executors import SerialExecutor
from gpu_kernels import devices
from gpu_kernels.devices import Choice

DRAWN = r"\.[0-9a-f]{8}-"
GPU = Wanted(Choice("gpu", "there is one"))
DEMANDED = Wanted(Choice("gpu", "there is one"), demanded=True)


class Frame:
    """What cuDF's DataFrame is asked for, with cuDF's words and none else."""

    sorted = 0

    def __init__(self, columns: dict[str, Any]) -> None:
        self.inner = pd.DataFrame(columns)

    def sort_values(self, by: list[str]) -> Frame:
        """Sort, without a promise of what happens to equal rows."""
        Frame.sorted += 1
        found = Frame({})
        found.inner = self.inner.iloc[::-1].sort_values(by, kind="quicksort")
        return found

    def __getitem__(self, name: str) -> pd.Series:
        return self.inner[name]


@pytest.fixture
def cudf(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a cuDF and a GPU in place."""
    module: Any = ModuleType("cudf")
    module.__spec__ = ModuleSpec("cudf", None)
    module.DataFrame = Frame
    monkeypatch.setitem(sys.modules, "cudf", module)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(1))
    monkeypatch.setattr(devices, "_simulated", lambda: False)
    monkeypatch.setattr(Frame, "sorted", 0)
    return module


def prepared(folder: Path, out: str, sorts: Wanted, **given: Any) -> dict[str, bytes]:
    """Return every file of the lanes by its path, without what is random in the names of runs."""
    left, right = (open_archive(str(folder / f"{s}.parquet"), s) for s in ("left", "right"))
    roles = Roles(given.pop("on", ("k",)), "t", "i", given.pop("groups", ()))
    place = folder / out
    settled = {"lanes": 3, "bad_rows": "error", "payload": True} | given
    prepare(
        left, right, roles, roles, folder=place, executor=SerialExecutor(), sorts=sorts, **settled
    )
    found = {}
    for path in place.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "manifest.json":
                content = re.sub(DRAWN.encode() + rb'|,"digest":"\w+"', b".-", content)
            found[re.sub(DRAWN, ".-", str(path.relative_to(place)))] = content
    return found


CASES: dict[str, dict[str, Any]] = {
    "numbers": {},
    "one lane": {"lanes": 1, "payload": False},
    "text and groups": {"on": ("word", "small"), "groups": ("group",)},
    "small runs": {"on": ("wide",), "split_rows": 40},
}


@pytest.mark.parametrize("name", CASES)
def test_files_are_those_of_the_cpu(cudf: Any, name: str, tmp_path: Path) -> None:
    del cudf
    write(tmp_path, drawn(1), drawn(2))
    ref = prepared(tmp_path, "ref", ASKED_FOR_CPU, **dict(CASES[name]))
    assert Frame.sorted == 0
    comp = prepared(tmp_path, "comp", GPU, **dict(CASES[name]))
    assert Frame.sorted > 0
    assert comp == ref
    assert len(ref) > 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=30))
def test_the_order_is_stable(rows: list[tuple[int, int]]) -> None:
    lane, values = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    ref = sorted(range(len(rows)), key=rows.__getitem__)
    with pytest.MonkeyPatch.context() as patch:
        module: Any = ModuleType("cudf")
        module.DataFrame = Frame
        patch.setitem(sys.modules, "cudf", module)
        assert sorted_by_cudf(lane, values).tolist() == ref
    assert lane_order(lane, values).tolist() == ref


def test_an_order_that_is_none_reaches_no_file(cudf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cuDF gives is looked through: else the CPU sorts, or a demanded GPU is an error."""
    lane, values = np.array([0, 0, 1]), np.array([2, 1, 0])
    for wrong in ([0, 1, 2], [1, 1, 2], [1, 0], [1, 0, 2, 2]):
        answer = pa.array(wrong)
        monkeypatch.setattr(cudf.DataFrame, "sort_values", lambda *_, a=answer: {"at": a})
        assert lane_order(lane, values, GPU).tolist() == [1, 0, 2]
        with pytest.raises(DeviceError, match="cuDF returned rows out of order"):
            lane_order(lane, values, DEMANDED)


def test_only_a_gpu_with_cudf_sorts(cudf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del cudf
    assert sorting_device(GPU) == GPU
    assert sorting_device(ASKED_FOR_CPU) == ASKED_FOR_CPU
    monkeypatch.setattr(placing, "find_spec", lambda _: None)
    assert sorting_device(DEMANDED).choice == Choice("cpu", "cuDF is not installed")


def test_tasks_elsewhere_sort_on_the_cpu(cudf: Any, tmp_path: Path) -> None:
    """A task on a cluster plans its memory for the kernels; cuDF would take its own."""
    del cudf
    write(tmp_path, drawn(1, 40), drawn(2, 40))

    class Elsewhere(SerialExecutor):
        slots = 2

    left, right = (open_archive(str(tmp_path / f"{s}.parquet"), s) for s in ("left", "right"))
    roles = Roles(("k",), "t", "i", ())
    prepare(
        left, right, roles, roles, folder=tmp_path / "out", executor=Elsewhere(), sorts=GPU,
        lanes=2, bad_rows="error", payload=False,
    )  # fmt: skip
    assert Frame.sorted == 0
