"""Archives that are read as lanes without being written: the tuples of prepared lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.archives.roles import Roles, check_roles
from engine.archives.source import open_archive
from engine.archives.stretches import row_groups
from engine.lanes.prepare import prepare_cached
from engine.lanes.reader import LaneFiles, whole_lane
from engine.lanes.stretch import stretch_of
from engine.lanes.unwritten import Unwritten, part_of
from engine.runtime.executors import SerialExecutor

ROLES = Roles(("k",), "t", "w")


def written(folder: Path, keys: str, size: int) -> None:
    """Write both streams in two files each, about in order of time, with ties and null keys."""
    rng = np.random.default_rng(8)
    for side in ("left", "right"):
        (folder / side).mkdir()
        ts = np.sort(rng.integers(0, 300, 400))
        for begin in range(0, 400, 25):  # row groups whose times overlap
            ts[begin : begin + 25] = rng.permutation(ts[begin : begin + 25])
        key = pa.array(rng.integers(0, 9, 400), mask=rng.random(400) < 0.1)
        key = key.cast(pa.string()) if keys == "text" else key
        table = pa.table({"t": ts, "k": key, "w": rng.random(400)})
        for at, part in enumerate((table.slice(0, 150), table.slice(150))):
            pq.write_table(part, folder / side / f"{at}.parquet", row_group_size=size)


def opened(folder: Path) -> tuple[LaneFiles, LaneFiles]:
    """Return the archives as a lane as they are, and as they are prepared."""
    archives = [open_archive(str(folder / side), side) for side in ("left", "right")]
    joined = check_roles(archives[0], ROLES, archives[1], ROLES)
    left, right = (
        Unwritten(
            archive,
            row_groups(archive, "t", joined.unit, ("k",), ("t", "k", "w")),
            ROLES, joined, quarantine=False, null_keys=True,
        )
        for archive in archives
    )  # fmt: skip
    prepared = prepare_cached(
        archives[0], archives[1], ROLES, ROLES, cache=folder / "cache", lanes=1,
        bad_rows="error", payload=False, executor=SerialExecutor(),
    )  # fmt: skip
    streams = [prepared.stream(0, side) for side in (0, 1)]
    return (
        LaneFiles(0, folder, 800, left, right),
        LaneFiles(0, prepared.lane_folder(0), 800, *streams),
    )


@pytest.mark.parametrize("keys", ["numbers", "text"])
@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize("between", [None, (40, 40), (37, 151), (150, 290), (600, 700)])
def test_the_tuples_are_those_of_the_lane(
    tmp_path: Path, keys: str, size: int, between: tuple[int, int] | None
) -> None:
    written(tmp_path, keys, size)
    found, wanted = opened(tmp_path)
    if between is not None:
        found = stretch_of(part_of(found, between), between, 0)
        wanted = stretch_of(wanted, between, 0)
    own, true = whole_lane(found.left, found.right), whole_lane(wanted.left, wanted.right)
    for side in (0, 1):
        for column in ("ts", "row", "importance"):
            assert getattr(own[side], column).tolist() == getattr(true[side], column).tolist()
        codes = dict(zip(own[side].key.tolist(), true[side].key.tolist(), strict=True))
        assert [codes[key] for key in own[side].key.tolist()] == true[side].key.tolist()
        assert len({*codes.values()}) == len(codes)


def test_small_reads_are_in_order(tmp_path: Path) -> None:
    written(tmp_path, "numbers", 10)
    stored: Any = opened(tmp_path)[0].left
    whole = pa.Table.from_batches(stored.batches(["_row", "_ts"]))
    parts = list(stored.batches(["_row", "_ts"], rows=30))
    assert len(parts) > 10
    assert max(part.num_rows for part in parts) <= 30
    assert pa.Table.from_batches(parts).equals(whole.combine_chunks())


def test_keys_are_read_only_where_rows_may_lack_them(tmp_path: Path) -> None:
    written(tmp_path, "numbers", 50)
    stored: Any = opened(tmp_path)[0].left
    lean = Unwritten(
        stored.archive, stored.groups, ROLES, stored.joined, quarantine=False, null_keys=False
    )
    rows = sum(batch.num_rows for batch in stored.batches(["_ts"]))
    assert rows < sum(batch.num_rows for batch in lean.batches(["_ts"])) == 400
    assert rows == sum(batch.num_rows for batch in lean.batches(["_ts", "_key"]))
