"""Samples that mean nothing: exit status 2, what is wrong and where, and nothing written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from job_cases import Streams, stream, streams, table
from sample_cases import arguments

import winnow
from engine.commands import main
from engine.jobs.sample import run as run_module
from engine.runtime.errors import OutputError

FREE: dict[str, Any] = {"memory": None}
UNIFORM: dict[str, Any] = {"method": "uniform"}
PPS: dict[str, Any] = {"method": "pps-cluster"}
OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "bottomk"}, r"--method is 'bottomk'; .*Did you mean 'bottom-k'\?"),
    "size": ({"size": "match"}, r"--size is 'match'; .*Did you mean 'matches'\?"),
    "count": (UNIFORM | {"count": "bounds"}, r"--count is 'bounds'; .*Did you mean 'bound'\?"),
    "size of eq": (
        {"method": "eq-cluster", "size": "equal"},
        r"--size is of pps-cluster and bottom-k; eq-cluster knows no sizes",
    ),
    "size of no values": (
        {"size": "values", "aggregate": "count(*)"},
        r"--size values is of values that aggregates add up, and none does: give --aggregate",
    ),
    "size of uniform": (UNIFORM | {"size": "equal"}, r"uniform knows no sizes"),
    "count of pps": (PPS | {"count": "bound"}, r"--count is of uniform; pps-cluster keeps tuples"),
    "nothing": (FREE, r"--memory is missing: give it, or --fraction"),
    "both": ({"fraction": 0.1}, r"--fraction and --memory exclude each other"),
    "no fraction": (FREE | {"fraction": 0}, r"--fraction is 0; give one above 0, at most 1"),
    "much": (FREE | {"fraction": 1.5}, r"--fraction is 1.5; give one above 0, at most 1"),
    "NaN": (FREE | {"fraction": "nan"}, r"--fraction is nan; give one above 0"),
    "no number": (FREE | {"fraction": "tenth"}, r"--fraction is 'tenth'; give a number"),
    "overflow of bottom-k": (
        {"method": "bottom-k", "overflow": 0.1},
        r"--overflow has no use with bottom-k, which never overflows",
    ),
    "overflow of a fraction": (
        PPS | FREE | {"fraction": 0.1, "overflow": 0.1},
        r"--overflow is of a memory: give --memory in place of --fraction",
    ),
    "overflow": (PPS | {"overflow": 0.7}, r"--overflow is 0.7; give one above 0, at most 0.5"),
    "no overflow": (PPS | {"overflow": 0}, r"--overflow is 0; give one above 0"),
    "confidence": ({"confidence": 95}, r"--confidence is 95; give one between 0 and 1"),
    "no memory": ({"memory": 0}, r"memory of the left stream comes to 0 tuples.*at least 1"),
    "half of one": ({"memory": 1}, r"memory of the right stream comes to 0 tuples"),
    "none of bottom-k": ({"method": "bottom-k", "memory": 0}, r"left stream comes to 0 tuples"),
    "none of uniform": (UNIFORM | {"memory": 0}, r"memory of a uniform sample is 0; it must be"),
    "lanes of bottom-k": (
        {"method": "bottom-k", "memory": 4, "lanes": 4},
        r"in one of 4 lanes that share it comes to 0 tuples, .*: give it more, or fewer --lanes$",
    ),
    "one of uniform": (
        UNIFORM | FREE | {"memory_left": 5},
        r"uniform samples both streams by one fraction, which needs the memory of both",
    ),
    "aggregate": ({"aggregate": "mean(left.i)"}, r"--aggregate 'mean\(left.i\)': there is no func"),
    "column": ({"aggregate": "sum(left.j)"}, r"stream left has no column 'j': it has t, k, i, p"),
    "words": ({"aggregate": "sum(left.p)"}, r"column left.p has type string, of which there is no"),
    "duration": ({"aggregate": "count(*) every 1min"}, r"every 1min .* plain numbers"),
    "twice": ({"aggregate": ["count(*)"] * 2}, r"--aggregate 'count\(\*\)' is given twice"),
    "exact of nothing": ({"exact_aggregates": True}, r"--exact-aggregates is of aggregates: name"),
    "tables of nothing": ({"aggregates_out": "t"}, r"--aggregates-out is of aggregates: name one"),
    "one folder": (
        {"aggregate": "count(*)", "out": "same", "aggregates_out": "same"},
        r"--out and --aggregates-out are both same: name two",
    ),
    "no profile": ({"profile": "no.json"}, r"profile no.json cannot be read .*winnow profile"),
    "idle profile": (
        {"method": "eq-cluster", "profile": "p.json"},
        r"--profile tells matches of keys or by age, of which eq-cluster .* asks nothing",
    ),
    "key": ({"on": "kk"}, r"left archive \S+ has no column 'kk'"),
    "window": ({"window": -5}, r"window -5 of stream left must be 0 ticks or more"),
    "combine": ({"combine": "prod"}, r"combine is 'prod'; choose one of min.*'product'"),
}  # fmt: skip


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("archives"))


@pytest.fixture
def folder(archives: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).write_bytes((archives.folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path  # type: ignore[return-value]


def everything(folder: Path) -> dict[str, int]:
    """Return every file and folder with its time of change; a cache of lanes may be begun."""
    paths = [path for path in folder.rglob("*") if path != folder / "cache"]
    return {
        str(path): path.stat().st_mtime_ns for path in paths if folder / "cache" not in path.parents
    }


def refused(folder: Path, capsys: pytest.CaptureFixture[str], pattern: str, **options: Any) -> None:
    before = everything(folder)
    assert main(arguments(folder, **options)) == 2
    shown, said = capsys.readouterr()
    assert shown == ""
    *_, said = said.splitlines(keepends=True)  # after the note on memory, if there is one
    assert said.startswith("winnow sample: error: ")
    assert re.search(pattern, said), said
    assert everything(folder) == before


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_mean_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    options, pattern = OPTIONS[name]
    refused(folder, capsys, pattern, **options)


def test_a_profile_must_be_of_such_streams(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "p.json").write_text("{}")
    refused(
        folder,
        capsys,
        r"p.json is no profile: winnow profile --out FILE makes one",
        profile="p.json",
    )


def test_facts_are_of_other_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text('fact = "f.parquet"\nfact-left = "a"\n')
    refused(folder, capsys, r"option .fact., but a sample is of streams", job="job.toml")
    some = table(stream(1))
    with pytest.raises(TypeError, match="share their join attribute: leave it out"):
        winnow.sample(some, some, fact=some)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword 'policy'"):
        winnow.sample(some, some, policy="dgl")  # type: ignore[call-arg]


def test_lists_of_a_job_file(folder: Path) -> None:
    (folder / "job.toml").write_text('aggregate = ["count(*) by left.k, right.k", "avg(left.i)"]\n')
    assert main(arguments(folder, job="job.toml")) == 0
    (folder / "again.toml").write_text('aggregate = "avg(left.i)"\nexact-aggregates = "perhaps"\n')
    assert main(arguments(folder, job="again.toml", out="other")) == 2


@pytest.mark.parametrize(("place", "option"), [("out", "--out"), ("tables", "--aggregates-out")])
def test_output_that_is_there_already(
    folder: Path, capsys: pytest.CaptureFixture[str], place: str, option: str
) -> None:
    (folder / place).mkdir()
    refused(folder, capsys, rf"folder \S*{place} exists: remove it or give another {option};",
            aggregate="count(*)", aggregates_out=folder / "tables")  # fmt: skip


def test_what_fails_at_last_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OutputError("the disk is full: make room")

    monkeypatch.setattr(run_module, "write_tables", fails)
    place = folder / "new" / "tables"
    refused(folder, capsys, "the disk is full", aggregate="count(*)", aggregates_out=place)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    true_parts = run_module.assemble_parts

    def meanwhile(*parts: Any) -> None:
        true_parts(*parts)
        (folder / "tables" / "other").mkdir(parents=True)

    monkeypatch.setattr(run_module, "assemble_parts", meanwhile)
    options = {"aggregate": "count(*)", "aggregates_out": folder / "tables"}
    assert main(arguments(folder, **options)) == 2
    assert "tables appeared while the job ran" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_rows_that_are_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(t, 1, -1.0) for t in range(5)]
    pq.write_table(table(rows), folder / "right.parquet")
    refused(folder, capsys, r"right.parquet: column i: 5 rows are negative")


def test_windows_up_to_a_time_far_from_all_others(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "MOST_WINDOWS", 1000)
    for side in ("left", "right"):
        rows = [(-100_000, 1, 1.0), *stream(1)]
        pq.write_table(table(rows), folder / f"{side}.parquet")
    message = r"'count\(\*\) every 10' has 10,012 windows from -100000 to 119, and at most 1,000 "
    refused(folder, capsys, message, aggregate="count(*) every 10")
    grouped = arguments(folder, aggregate="count(*) by left.k every 10")
    assert main(grouped) == 0
