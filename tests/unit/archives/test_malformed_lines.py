"""Malformed lines of CSV and JSON are told by file and row, or set aside; none goes unseen."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import winnow
from engine.archives import readers
from engine.runtime.errors import InputError

BAD = {
    "csv": ["1", "1,2,3,4", '"a\nb"', "x,y", "   "],
    "jsonl": ["1", "[]", '{"t": 1', '{"t": "x"}', '{"t": 1}}', '{"t": 1, "t": 2}'],
}
GOOD: dict[str, Callable[[int], str]] = {
    "csv": lambda i: f'{i},{i % 3},"{["a", "b,c", chr(10)][i % 3]}"',
    "jsonl": lambda i: f'{{"t": {i}, "k": {i % 3}, "s": "a"}}',
}


def replayed(path: Path, bad_rows: str = "quarantine", **more: Any) -> winnow.Result:
    right = pa.table({"t": [0], "k": [1]})
    given = {"on": "k", "time": "t", "window": 10**6, "bad_rows": bad_rows} | more
    return winnow.replay(path, right, **given)


def messy(ending: str, seed: int, rows: int) -> tuple[bytes, list[int], list[int]]:
    """Return a text, its malformed rows, and the others whose key is 1."""
    chance = random.Random(seed)  # noqa: S311
    lines, bad, joined = [], [], []
    for i in range(rows):
        if i and chance.random() < 0.1:
            bad.append(i)
            lines.append(chance.choice(BAD[ending]))
        else:
            joined += [i] if i % 3 == 1 else []
            lines.append(GOOD[ending](i))
        lines += [""] * (chance.random() < 0.05)
    header = ["t,k,s"] if ending == "csv" else []
    return "\n".join(header + lines).encode() + b"\n" * (seed % 2), bad, joined


@pytest.mark.parametrize("block", [None, 64])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz", "jsonl.gz"])
def test_malformed_lines_are_set_aside_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, seed: int, block: int | None
) -> None:
    if block is not None:
        monkeypatch.setattr(readers, "_BLOCK", block)
    text, bad, joined = messy(ending.removesuffix(".gz"), seed, 200)
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    found = replayed(path)
    assert sorted(found.outputs["left_row"].to_pylist()) == joined
    assert found.rejected["left"]["row"].to_pylist() == bad
    assert all(
        own.startswith("malformed line ") for own in found.rejected["left"]["reason"].to_pylist()
    )
    assert (found.report["rows"]["left"], found.report["rejected"]["left"]) == (200, len(bad))
    with pytest.raises(InputError, match=rf"{len(bad)} rows are malformed \(rows {bad[0]}, "):
        replayed(path, "error")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "t,k\n1,0\n2,1,5\n", "1 row is malformed (row 1: '2,1,5' (3 cells, where the"),
        ("a.jsonl", '{"t":1,"k":0}\n{"t"\n', "1 row is malformed (row 1: '{\"t\"' (Missing a "),
        ("a.jsonl", '{"t":1,"k":0}\n{"t":2,"k":"1"}\n', "(k is string and no number)"),
        ("a.csv", "t,k\n1,0\nx,0\ny,0\n", "readable as a time (rows 1, 2; row 1: 'x')"),
    ],
)  # fmt: skip
def test_messages_name_the_file_the_row_and_what_is_wrong(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as told:
        replayed(tmp_path / name, "error")
    assert f"{name}: " in str(told.value)
    assert message in str(told.value)
    assert "use bad_rows quarantine (rows count from 0 within a file)" in str(told.value)


def test_other_jobs_set_malformed_lines_aside_too(tmp_path: Path) -> None:
    facts, rows = tmp_path / "facts.csv", tmp_path / "rows.jsonl"
    facts.write_text("k,a,b\n1,0,9\n1,0\n")
    rows.write_text('{"t": 1, "k": 1}\nx\n{"t": 2, "k": 1}\n')
    over = {"on": "k", "time": "t", "fact_begin": "a", "fact_end": "b"}
    found = winnow.lookup(rows, facts, **over, bad_rows="quarantine")
    assert found.outputs["row"].to_pylist() == [0, 2]
    assert [found.rejected[own]["row"].to_pylist() for own in ("stream", "fact")] == [[1], [1]]
    many = winnow.multijoin(
        {"a": rows, "b": rows}, predicate="equi:k", time="t", window=9, bad_rows="quarantine"
    )
    assert (many.outputs.num_rows, dict(many.report["rejected"])) == (4, {"a": 1, "b": 1})
    estimated = winnow.estimate(rows, rows, on="k", time="t", window=9, bad_rows="quarantine")
    assert (estimated.report["rejected"], estimated.outputs["estimate"].to_pylist()) == (2, [4])
    facts.write_text("k\n1\n1,0\n")
    with pytest.raises(InputError, match=r"facts.csv: row 1, counted from 0, is malformed line"):
        winnow.lookup(rows, facts, on="k", time="t", bad_rows="quarantine")


def test_quoted_lines_are_one_cell_also_where_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_text("t,k,s\n" + "".join(f'{i},1,"one\n2,3,4\n"\n' for i in range(100)))
    found = replayed(path, "error")
    assert sorted(found.outputs["left_t"].to_pylist()) == [*range(100)]
    assert {*found.outputs["left_s"].to_pylist()} == {"one\n2,3,4\n"}


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_quote_that_is_not_closed_hides_no_rows(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f't,k,s\n1,1,"a\n2,1,b\n3,1,c{end}', newline="")
    with pytest.raises(InputError, match=r"a\.csv: its last row opens a quote that is not closed"):
        replayed(path)
    path.write_text(f't,k,s\n1,1,"a\n2,1,b\n3,1,c"{end}', newline="")
    assert replayed(path).outputs.num_rows == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "t,k\n1,1\n".encode("utf-16"), "is in UTF-16: convert it, as `iconv -f utf-16"),
        ("a.csv", gzip.compress(b"t,k\n1,1\n", mtime=0), "is compressed: let its name end in .gz"),
        (
            "a.jsonl",
            gzip.compress(b'{"t": 1, "k": 1}\n', mtime=0),
            "is compressed: let its name end in .gz",
        ),
        ("a.csv", b"t,k,gr\xf6\xdfe\n1,1,1\n", "has column names that are not in UTF-8: convert"),
        ("a.jsonl", b'[\n{"t": 1, "k": 1},\n{"t": 2, "k": 1}\n]\n', "holds an array: write each"),
        ("a.jsonl", b"\n null\nnull\n", "is empty: it needs an object on a line"),
        ("a.jsonl", b"t,k\n1,1\n", "cannot be read as JSON with an object on each line"),
    ],
)
def test_files_of_another_encoding_are_told(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"the left archive: file .*{name} ") as told:
        replayed(tmp_path / name)
    assert message in str(told.value)


@pytest.mark.parametrize("block", [40, 64, 1 << 22])
@pytest.mark.parametrize("null", ["null\n", "\n \tnull \n", "null\nnull\n"])
def test_null_on_a_line_is_a_row_without_time(
    tmp_path: Path, null: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", block)
    lines = [f'{{"t": {at:3}, "k": 1}}\n{null}' for at in range(20)]
    (tmp_path / "a.jsonl").write_text(null + "".join(lines))
    found = replayed(tmp_path / "a.jsonl")
    assert sorted(found.outputs["left_t"].to_pylist()) == [*range(20)]
    assert found.report["rejected"]["left"] == 21 * null.count("null")
    with pytest.raises(
        InputError, match=r"a\.jsonl: column t: .* are null \(rows 0, .*bad_rows quarantine"
    ):
        replayed(tmp_path / "a.jsonl", "error")


def test_a_line_of_json_in_another_encoding_is_malformed(tmp_path: Path) -> None:
    rows = ['{"t": 1, "k": 1, "s": "größe"}', '{"t": 2, "k": 1, "s": "größe"}']
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(rows).encode())
    assert replayed(path).outputs["left_s"].to_pylist() == ["größe"] * 2
    path.write_bytes(rows[0].encode() + b"\n" + rows[1].encode("latin1"))
    assert replayed(path).outputs["left_s"].to_pylist() == ["größe"]
    with pytest.raises(InputError, match=r"a\.jsonl: 1 row is malformed \(row 1: .*not in UTF-8"):
        replayed(path, "error")


@pytest.mark.parametrize("odd", ["n/a?", "007", "99999999999999999999", "1.5x"])
def test_the_cell_that_makes_a_key_text_is_told(tmp_path: Path, odd: str) -> None:
    (tmp_path / "a.csv").write_text(f"t,k\n1,1\n2,{odd}\n")
    message = (
        rf"column k of the left archive \(string\) .* the left archive has text such as '{odd}': "
    )
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        replayed(tmp_path / "a.csv")


def test_json_files_of_which_one_has_a_number_as_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": 1, "k": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"t": 2, "k": "1"}\n')
    message = r"mixes schemas: column k has type int64 in .*a\.jsonl and type string in .*b\.jsonl"
    with pytest.raises(InputError, match=message):
        replayed(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"t": 1, "k": null}\n')
    found = winnow.replay(tmp_path, tmp_path, on="k", time="t", window=9)
    assert found.outputs.num_rows == 1
