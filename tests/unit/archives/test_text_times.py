"""Times in text are read in the finest unit and the zone that the archive has, or refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import winnow
from engine.archives import readers
from engine.archives.roles import Roles, check_roles, zone_of
from engine.archives.source import open_archive
from engine.runtime.errors import InputError

BEGIN = datetime(2024, 1, 1)  # noqa: DTZ001 - times without a zone
WHOLE = [(BEGIN + timedelta(seconds=at)).isoformat() for at in range(1000)]
PARTS = [f"{(BEGIN + timedelta(seconds=1000 + at)).isoformat()}.500" for at in range(500)]


def write(path: Path, times: Sequence[str]) -> Path:
    """Write rows of one key."""
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        path.write_text("t,k\n" + "".join(f"{own},1\n" for own in times))
    else:
        path.write_text("".join(json.dumps({"t": own, "k": 1}) + "\n" for own in times))
    return path


def joined(place: Path, **options: str) -> winnow.Result:
    chosen = {"window": "2s", "bad_rows": "quarantine", **options}
    return winnow.replay(place, place, on="k", time="t", columns="ids", **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("bad", [(), ("oops",), ("",)])
def test_the_finest_time_of_the_first_lines_decides(
    tmp_path: Path, ending: str, bad: Sequence[str]
) -> None:
    found = joined(write(tmp_path / f"a.{ending}", [*WHOLE, *PARTS, *bad]))
    assert dict(found.report.rejected) == dict.fromkeys(("left", "right"), len(bad))
    whole, part = 1000, 500  # each meets itself and those up to two seconds from it
    within = sum(n + 2 * (n - 1) + 2 * (n - 2) for n in (whole, part))
    assert found.report.result.outputs == within + 2 * 1  # 999 s and 1000.5 s


@pytest.mark.parametrize("first", [WHOLE[:1], ["2024-01-01"], [""]])
def test_the_finest_time_of_any_file_decides(tmp_path: Path, first: Sequence[str]) -> None:
    write(tmp_path / "in" / "a.jsonl", first)
    write(tmp_path / "in" / "b.jsonl", ["2024-01-01T00:00:00.500", "2024-01-01T00:00:01.250"])
    found = joined(tmp_path / "in", window="1s")
    empty = first == [""]
    assert dict(found.report.rejected) == dict.fromkeys(("left", "right"), int(empty))
    assert found.report.result.outputs == (4 if empty else 7)
    assert found.report.window.tick == "ns"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("bad_rows", ["error", "quarantine"])
@pytest.mark.parametrize(
    ("times", "later", "told"),
    [
        (WHOLE, "2024-01-02T00:00:00.5", "time '2024-01-02T00:00:00.5' is finer than those in "),
        (["2024-01-01"] * 900, WHOLE[1], "the first 4 MiB of each file, which make the tick 1 day"),
        (WHOLE, "2024-01-02T00:00:00Z", "'2024-01-02T00:00:00Z' has a time zone, and times before"),
        ([f"{own}Z" for own in WHOLE], WHOLE[0], "'2024-01-01T00:00:00' has no time zone, and tim"),
    ],
)
def test_another_kind_of_time_further_on_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, bad_rows: str,
    times: Sequence[str], later: str, told: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(readers, "_BLOCK", 1 << 13)
    place = write(tmp_path / f"a.{ending}", [*times, later])
    with pytest.raises(InputError, match=r"^the left archive: file .*: column t: ") as found:
        joined(place, window="2 days", bad_rows=bad_rows)
    assert told in str(found.value)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_some_zones_are_refused(tmp_path: Path, ending: str) -> None:
    place = write(tmp_path / f"a.{ending}", ["2024-01-01T09:00:00Z", "2024-01-01T09:00:01"])
    told = (
        "time column t holds times with a time zone, such as '2024-01-01T09:00:00Z', and without "
        "one, such as '2024-01-01T09:00:01': give all one, or none"
    )
    with pytest.raises(InputError) as found:
        joined(place)
    assert told in str(found.value)


def test_a_time_too_far_for_the_unit_is_told_as_such(tmp_path: Path) -> None:
    found = joined(write(tmp_path / "a.jsonl", [PARTS[0], "9999-12-31T00:00:00"]))
    assert found.rejected["left"]["reason"].to_pylist() == ["time out of int64 range"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_window_means_the_same_in_any_unit(tmp_path: Path, ending: str) -> None:
    one = joined(write(tmp_path / f"s.{ending}", WHOLE), window="2s")
    other = joined(write(tmp_path / f"ns.{ending}", [f"{own}.0" for own in WHOLE]), window="2s")
    assert (one.report.window.tick, other.report.window.tick) == ("s", "ns")
    ids = ["left_row", "right_row"]
    assert one.outputs.select(ids).equals(other.outputs.select(ids))


@pytest.mark.parametrize("right", ["csv", "jsonl"])
@pytest.mark.parametrize("left", ["csv", "jsonl"])
def test_outputs_have_the_zone_of_the_left_stream(tmp_path: Path, left: str, right: str) -> None:
    for ending in (left, right):
        write(tmp_path / f"z.{ending}", ["2024-01-01T09:00:00Z"])
    found = winnow.replay(
        tmp_path / f"z.{left}", tmp_path / f"z.{right}", on="k", time="t", window="5s"
    )
    assert str(found.outputs.schema.field("ts").type) == "timestamp[s, tz=UTC]"
    assert found.report.window.zone == "UTC"


def test_numbers_as_text_stay_numbers(tmp_path: Path) -> None:
    place = write(tmp_path / "a.jsonl", ["7", "8.0", "9", "x", WHOLE[0]])
    found, roles = open_archive(str(place), "left"), Roles(("k",), "t")
    assert check_roles(found, roles, found, roles).unit == "tick"
    assert zone_of(found, "t") is None
    assert dict(joined(place, window="1").report.rejected) == {"left": 2, "right": 2}


@pytest.mark.parametrize("odd", ["oops,1,1", f" {WHOLE[2]} ,1,1", f"{WHOLE[2]},1,heavy"])
def test_a_cell_of_text_in_one_file_is_as_in_a_file_of_all(tmp_path: Path, odd: str) -> None:
    head, rows = "t,k,i\n", [f"{own},1,0.5\n" for own in WHOLE[:4]]
    for name, parts in (("one", [[*rows, odd]]), ("two", [rows[:2], [*rows[2:], odd]])):
        (tmp_path / name).mkdir()
        for number, own in enumerate(parts):
            (tmp_path / name / f"{number}.csv").write_text(head + "".join(own))
    one, two = (joined(tmp_path / name, importance="i") for name in ("one", "two"))
    assert one.outputs.num_rows
    assert one.outputs.equals(two.outputs)
    assert one.report.rejected == two.report.rejected
