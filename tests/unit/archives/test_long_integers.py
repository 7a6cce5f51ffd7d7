"""Integers of CSV cells that do not fit 64 bits: a float would lose their last digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.archives import texts
from engine.runtime.errors import InputError
from winnow import replay

JOIN: dict[str, Any] = {"on": "id", "time": "t", "window": 5}


@pytest.mark.parametrize("cell", ["18446744073709551615", "-9223372036854775809", "1" * 40])
def test_integers_of_which_one_does_not_fit_are_text(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"id,t\n7,1\n{cell},2\nNA,3\n,4\n")
    assert texts.first_schema(str(path), "left").types == [pa.string(), pa.int64()]


@pytest.mark.parametrize("cell", ["9223372036854775807", "-9223372036854775808", "1e19", "0.5"])
def test_other_numbers_stay_numbers(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"id,t,empty\n7,1,\n{cell},2,\n")
    kinds = texts.first_schema(str(path), "left").types
    assert kinds[0] in (pa.int64(), pa.float64())
    assert kinds[1:] == [pa.int64(), pa.null()]


def test_long_integers_join_and_are_written_by_all_of_their_digits(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,id,note\n1,18446744073709551614,36893488147419103233\n")
    (tmp_path / "b.csv").write_text("t,id\n1,18446744073709551615\n2,18446744073709551614\n")
    [row] = replay(tmp_path / "a.csv", tmp_path / "b.csv", **JOIN).outputs.to_pylist()
    assert (row["right_row"], row["left_note"]) == (1, "36893488147419103233")


def test_long_integers_of_time_and_importance_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,id,i\n1,1,100000000000000000000\n2,2,5\n")
    found = replay(tmp_path / "a.csv", tmp_path / "a.csv", importance="i", **JOIN)
    assert found.outputs["importance"].to_pylist() == [1e20, 5.0]
    (tmp_path / "b.csv").write_text("t,id\n1,1\n18446744073709551615,2\n")
    with pytest.raises(InputError, match=r"column t: 1 row is out of int64 range \(row 1\)"):
        replay(tmp_path / "b.csv", tmp_path / "a.csv", **JOIN)
