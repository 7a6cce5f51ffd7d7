"""DataFrames whose replay is decided on a GPU, in the CUDA simulator: the rows of the archives."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import ORDER, ROLES, archived, drawn, found, write
from thorough import THOROUGH, guards

from engine.lanes.profile import LaneProfile, SideProfile
from spark_plugin import on_gpu
from spark_plugin.dataframe import replay

ROWS = 50
TOLD = {"window": 9, "memory": 5, "policy": "dgl"}
SETTINGS: dict[str, dict[str, Any]] = {
    "text keys": {"on": ["word", "small"], "lanes": 3, "policy": "age", "probe": "after_admission"},
    "groups": {"partition_by": "group", "policy": "dimpprob", "estimator": "history"},
    "one memory": {"split": "pooled", "lanes": 2, "probe": "after_admission"},
    "draws": {"policy": "rand", "seed": 11, "columns": "ids", "memory": "20%"},
    "one side": {"policy": "yield", "memory": None, "memory_right": 2, "lanes": 2},
    "facts": {"fact_left": "k", "fact_right": "k", "fact_begin": "a", "fact_end": "b"},
}
if THOROUGH:
    SETTINGS["exact"] = {"memory": None}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("archives"), drawn(1, ROWS), drawn(2, ROWS))
    facts = {"k": [0, 1, 1, 2], "a": [None, 5, 70, 0], "b": [None, 60, None, 90]}
    pq.write_table(pa.table(facts), folder / "facts.parquet")
    return folder


@guards("spark_plugin", "gpu_kernels", "engine/device", "tests/gpu/simulator")
@pytest.mark.parametrize("name", SETTINGS)
def test_rows_are_those_of_the_archives(spark: Any, archives: Path, name: str) -> None:
    told: dict[str, Any] = ROLES | TOLD | SETTINGS[name]
    file = str(archives / "facts.parquet")
    through = name == "facts"
    expected = archived(archives, device="cpu", **(told | ({"fact": file} if through else {})))
    left, right = (spark.read.parquet(str(found(archives, s))) for s in ("left", "right"))
    if through:
        told["fact"] = spark.read.parquet(file)
    kept = replay(left.repartition(3), right, device="gpu", **told)
    result = kept.toArrow().sort_by(ORDER)
    assert expected.num_rows
    assert result.column_names == expected.column_names
    for column in expected.column_names:
        assert result.column(column).to_pylist() == expected.column(column).to_pylist(), column


@pytest.mark.parametrize(
    ("most", "groups"),
    [(1, [[20], [10], [40], []]), (30, [[20, 10], [40], []]), (99, [[20, 10, 40]])],
)
def test_groups_end_where_they_have_rows_enough(
    most: int, groups: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lane may hold what those of its group before it have left of the memory."""
    rooms: list[int] = []

    class Aside:
        def __init__(self, room: int) -> None:
            rooms.append(room)
            self.rows = self.held = 0

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def add(self, batch: int) -> None:
            self.rows += batch
            self.held += batch

        def profile(self, *_: object) -> LaneProfile:
            return LaneProfile(SideProfile(self.rows, 0, 0, 0, 0.0), SideProfile(0, 0, 0, 0, 0.0))

    monkeypatch.setattr(on_gpu, "GROUP_ROWS", most)
    monkeypatch.setattr(on_gpu, "HELD_BYTES", 25)
    monkeypatch.setattr(on_gpu, "Spool", Aside)
    plan: Any = SimpleNamespace(windows=(1, 1), facts=None)
    lanes: Any = iter([("a", [15, 5]), ("b", [10]), ("c", [40])])
    found, ended = [], False
    while not ended:
        with ExitStack() as stack:
            group, ended = on_gpu._gathered(plan, lanes, stack)  # noqa: SLF001 - without a GPU
            found.append([lane.rows for lane in group])
    assert found == groups
    assert rooms[1] == (25 if most == 1 else 5)
