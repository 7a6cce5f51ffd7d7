"""Bad input of which `tests/commands` has no case: what is said, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import winnow
from engine.archives.roles import Roles, check_roles
from engine.archives.source import Archive, open_archive
from engine.lanes.build import Build
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare
from engine.runtime.errors import InputError, OutputError, SpecError
from engine.runtime.executors import SerialExecutor
from engine.runtime.storage import reading

GOOD = {"t": [1, 2], "k": [1, 2], "i": [0.5, 1.0]}
ROLES = Roles(("k",), "t", "i")


def parquet(path: Path, columns: dict[str, Any]) -> Archive:
    pq.write_table(pa.table(columns), path)
    return open_archive(str(path), path.stem.split("-")[0])


def run(folder: Path, left: Archive, roles: Roles = ROLES, **options: Any) -> Prepared:
    right = parquet(folder / "right.parquet", GOOD)
    settings = {"lanes": 1, "bad_rows": "error", "payload": True} | options
    return prepare(
        left, right, roles, ROLES, folder=folder / "out", executor=SerialExecutor(), **settings
    )


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing is at .*: check the path.$"):
        open_archive(str(tmp_path / "r.parquet"), "left")
    with pytest.raises(InputError, match=r"folder .*nowhere does not exist"):
        open_archive(str(tmp_path / "nowhere" / "a.parquet"), "right")


def test_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(InputError, match="holds no data file"):
        open_archive(str(tmp_path), "left")


def test_mixed_schemas(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", GOOD)
    parquet(tmp_path / "sub-b.parquet", {"t": [1], "k": [1]})
    with pytest.raises(
        InputError, match=r"column i has type double in .*no such column in .*sub-b"
    ):
        open_archive(str(tmp_path), "left")


def test_mixed_schemas_of_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k\n1,1\n")
    (tmp_path / "b.csv").write_text("t,k\n1,x\n")
    assert open_archive(str(tmp_path), "left").schema.field("k").type == pa.string()
    (tmp_path / "b.csv").write_text("t,k\n1,true\n")
    with pytest.raises(InputError, match=r"column k has type int64 in .*a.csv and type bool"):
        open_archive(str(tmp_path), "left")
    (tmp_path / "b.csv").write_text("t,kk\n1,x\n")
    with pytest.raises(InputError, match="has no column k"):
        open_archive(str(tmp_path), "left")


def test_mixed_formats(tmp_path: Path) -> None:
    parquet(tmp_path / "b.parquet", GOOD)
    (tmp_path / "a.csv").write_text("t\n1\n")
    with pytest.raises(InputError, match=r"mixes formats: .*a.csv and .*b.parquet"):
        open_archive(str(tmp_path), "left")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: it needs a line of column names"),
        (b"t,t\n1,2\n", "more than one column t"),
        (
            b"t,k\n1,2\n3\n",
            r"left.csv: 1 row is malformed \(row 1: '3' \(1 cell, where the header has",
        ),
        (b"t,k\n1,\xff\n\xfe,2\n", "more than one column|cannot be read|holds|time"),
    ],
)
def test_csv_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "left.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        run(tmp_path, open_archive(str(path), "left"), Roles(("k",), "t"))


def test_a_csv_cell_of_another_type_further_on(tmp_path: Path) -> None:
    path = tmp_path / "left.csv"
    path.write_text("t,k\n" + "1,1\n" * 1_200_000 + "2,x\n")
    with pytest.raises(InputError, match=r"left.csv: column k is int64 in its first lines"):
        run(tmp_path, open_archive(str(path), "left"), Roles(("k",), "t"))


def check(tmp_path: Path, left: dict[str, Any], right: dict[str, Any], roles: Roles) -> None:
    check_roles(
        parquet(tmp_path / "left.parquet", left),
        roles,
        parquet(tmp_path / "right.parquet", right),
        roles,
    )


def test_an_importance_that_only_one_stream_has(tmp_path: Path) -> None:
    rows, roles = {"time": [1], "key": [1]}, Roles(("key",), "time", "bid")
    told = "left archive .* no column 'bid': .* For one stream alone give --right-importance bid"
    with pytest.raises(InputError, match=told):
        check(tmp_path, rows, {**rows, "bid": [1]}, roles)
    with pytest.raises(InputError, match=r"has no column 'bid': it has time, key\.$"):
        check(tmp_path, rows, rows, roles)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ({"t": [True]}, {}, "time column t has type bool"),
        ({"t": pa.array([1], pa.timestamp("s"))}, {}, "they are not of one kind"),
        (
            {"t": pa.array([1], pa.timestamp("s"))},
            {"t": pa.array([1], pa.timestamp("s", "UTC"))},
            "time zone",
        ),
        ({"k": [1.5]}, {}, "cast the column to a decimal or an integer"),
        ({"k": [[1]]}, {"k": [[1]]}, "cannot be joined on"),
        ({"k": [b"a"]}, {"k": ["a"]}, "not of one kind"),
        (
            {"k": pa.array([1], pa.date32())},
            {"k": pa.array([1], pa.timestamp("s"))},
            "cast the date to a timestamp",
        ),
        (
            {"k": pa.array([None], pa.decimal256(76, 0))},
            {"k": pa.array([None], pa.decimal128(38, 38))},
            "114 digits",
        ),
    ],
)
def test_mistyped_columns(
    tmp_path: Path, left: dict[str, Any], right: dict[str, Any], message: str
) -> None:
    base = {"t": [1], "k": [1], "i": [1.0]}
    with pytest.raises(InputError, match=message):
        check(tmp_path, base | left, base | right, ROLES)


def test_no_join_attribute(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has no join attribute"):
        run(tmp_path, parquet(tmp_path / "left.parquet", GOOD), Roles((), "t", "i"))


def test_bad_rows_are_an_error_that_names_them(tmp_path: Path) -> None:
    weights = [1.0] * 30
    for row in (7, 19, 20):
        weights[row] = -1.0
    rows = {"t": list(range(30)), "k": [1] * 30, "i": weights}
    left = parquet(tmp_path / "left.parquet", rows)
    message = r"left\.parquet: column i: 3 rows are negative \(rows 7, 19, 20\)"
    for split_rows in (1000, 4):
        with pytest.raises(InputError, match=message + ".*--bad-rows quarantine"):
            run(tmp_path, left, split_rows=split_rows)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["left.parquet", "right.parquet"]


def test_bad_rows_count_within_their_file(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    good = {"t": [1.0, 2.0], "k": [1, 2], "i": [1.0, 1.0]}
    parquet(tmp_path / "left" / "a.parquet", good)
    parquet(tmp_path / "left" / "b.parquet", good | {"t": [1.0, None]})
    with pytest.raises(InputError, match=r"b\.parquet: column t: 1 row is null \(row 1\)"):
        run(tmp_path, open_archive(str(tmp_path / "left"), "left"))


def test_options_that_mean_nothing(tmp_path: Path) -> None:
    left = parquet(tmp_path / "left.parquet", GOOD)
    with pytest.raises(SpecError, match="more than 65536 lanes"):
        run(tmp_path, left, lanes=70_000)
    taken = parquet(tmp_path / "left.parquet", GOOD | {"row": [1, 2]})
    with pytest.raises(SpecError, match=r"column row of the left archive .*--columns ids"):
        run(tmp_path, taken)
    assert run(tmp_path, taken, payload=False).left.joined == 2


def test_too_many_groups(tmp_path: Path) -> None:
    rows = {"t": [0] * 700, "k": [1] * 700, "i": [1.0] * 700, "g": list(range(700))}
    roles = Roles(("k",), "t", "i", ("g",))
    sides = [parquet(tmp_path / f"{side}.parquet", rows) for side in ("left", "right")]
    for split_rows in (1000, 500):
        with pytest.raises(SpecError, match=r"700 groups of --partition-by with 100 lanes"):
            prepare(
                *sides,
                roles,
                roles,
                lanes=100,
                folder=tmp_path / "out",
                bad_rows="error",
                payload=False,
                executor=SerialExecutor(),
                split_rows=split_rows,
            )


def test_an_output_folder_that_exists(tmp_path: Path) -> None:
    left = parquet(tmp_path / "left.parquet", GOOD)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    with pytest.raises(OutputError, match="exists: name another or remove it"):
        run(tmp_path, left)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("when", ["before", "at the end"])
def test_an_archive_that_goes_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, when: str
) -> None:
    path = tmp_path / f"left.{ending}"
    (pq.write_table if ending == "parquet" else pc.write_csv)(pa.table(GOOD), path)
    left = open_archive(str(path), "left")
    if when == "before":
        path.unlink()
    else:
        run_build = Build.run

        def building(*given: Any) -> Prepared:
            found = run_build(*given)
            path.unlink()
            return found

        monkeypatch.setattr(Build, "run", building)
    with pytest.raises(InputError, match=rf"the left archive: file {path}.*(is gone|No such file)"):
        run(tmp_path, left)


def test_an_archive_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "left.parquet"
    left = parquet(path, GOOD)
    parquet(path, GOOD | {"k": [3, 4]})
    with pytest.raises(InputError, match=r"changed while it was read"):
        run(tmp_path, left)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_manifest_is_no_lanes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no lanes: prepare them"):
        Prepared.load(tmp_path)


@pytest.mark.parametrize("task", [winnow.replay, winnow.estimate])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_bad_rows_of_one_file_say_of_which_stream(
    tmp_path: Path, task: Callable[..., Any], ending: str
) -> None:
    table = pa.table({"t": [1.0, None, 3.0], "k": [1, 2, 3]})
    place = tmp_path / f"a.{ending}"
    if ending == "csv":
        pc.write_csv(table, place)
    else:
        pq.write_table(table, place)
    with pytest.raises(InputError, match=r"a\.\w+: column t: 1 row is null \(row 1\)") as found:
        task(place, place, on="k", time="t", window=1)
    assert str(found.value).startswith("the left archive: file ")
    if task is winnow.replay:
        assert "; the right archive: file " in str(found.value)


def test_keys_that_are_not_in_utf_8_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_text("t,k\n1,Köln\n", encoding="latin-1")
    (tmp_path / "utf.csv").write_text("t,k\n1,Köln\n")
    latin, utf = (open_archive(str(tmp_path / f"{own}.csv"), own) for own in ("latin", "utf"))
    told = r"stream latin \(binary\).*: the text of stream latin is not in UTF-8: convert it, as"
    for pair in ((latin, utf), (utf, latin)):
        with pytest.raises(InputError, match="is not in UTF-8: convert it, as `iconv"):
            check_roles(pair[0], Roles(("k",), "t"), pair[1], Roles(("k",), "t"))
    with pytest.raises(InputError, match=told):
        check_roles(latin, Roles(("k",), "t"), utf, Roles(("k",), "t"))
    with pytest.raises(InputError, match="write them alike, in UTF-8"):
        open_archive(str(tmp_path), "left")


@pytest.mark.parametrize(
    ("name", "opens"),
    [("left.csv", "text_file"), ("left.jsonl", "text_file"), ("left.parquet", "parquet_now")],
)
def test_a_file_that_may_not_be_read_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, opens: str
) -> None:
    path = tmp_path / name
    path.write_text("t,k\n1,2\n")

    def closed(where: str, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", where)

    monkeypatch.setattr(reading, opens, closed)
    with pytest.raises(InputError, match=f"{name} may not be read: allow it with chmod u\\+r$"):
        open_archive(str(path), "left")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (",k", r"it has '', k\. A column without a name cannot be used: give it one in the first"),
        (
            "9,k",
            r"it has 9, k\. If 9 is not a name, the header is missing: add a line of column",
        ),
        ("i,k", r"it has i, k\.$"),
        ("K,9", r"it has K, 9\. Did you mean 'K'\?$"),
    ],
)
def test_text_without_a_header_or_with_a_column_without_a_name(
    tmp_path: Path, header: str, message: str
) -> None:
    (tmp_path / "left.csv").write_text(f"{header}\n1,1\n")
    with pytest.raises(InputError, match=message):
        check_roles(
            open_archive(str(tmp_path / "left.csv"), "left"),
            Roles(("k",), "t"),
            parquet(tmp_path / "right.parquet", GOOD),
            Roles(("k",), "t"),
        )
