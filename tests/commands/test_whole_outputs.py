"""What stands is whole, with its report, whatever fails before or after it is put in its place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_cases import PAIR, REPORTS, SEVERAL

from engine.archives.rows import Rows
from engine.archives.source import open_archive
from engine.commands import main, telling
from engine.jobs import output_at
from engine.jobs.lookup import run as lookup_run
from engine.lanes import reader
from engine.report import envelope
from engine.report.recording import NAME
from engine.runtime.errors import InputError, OutputError

CASES = {
    "replay": f"replay {PAIR} --window 20 --memory 16 --policy prob",
    "star": REPORTS["replay_streams"].replace("{report}", ""),
    "sweep": f"sweep {PAIR} --windows 20 --memory 25% --policies prob",
    "bound": f"bound {PAIR} --window 20 --memory 10% --method flow",
    "sample": f"sample {PAIR} --window 20 --memory 40 --method bottom-k",
    "multijoin": f"multijoin {SEVERAL} --predicate equi:k --window 12 --engine local",
    "lookup": "lookup --stream {folder}/left.parquet --on k --time t --fact {folder}/fact.parquet"
    " --fact-on a",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    golden_cases.write_streams(made)
    return made


def words(case: str, folder: Path, out: Path, *more: str) -> list[str]:
    """Return a command line that writes to `out`."""
    given = golden_cases.words(CASES[case], folder, folder / "report.json")
    return [*(own.strip("'") for own in given), "--out", str(out), *more]


def raising(error: BaseException) -> Callable[..., Any]:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    return fails


@pytest.mark.parametrize("case", CASES)
def test_outputs_appear_with_their_report(
    case: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, seen = output_at.OutputFolder.publish, []

    def publishing(own: Any) -> None:
        seen.append({file.name for file in own.whole.iterdir()})
        publish(own)

    monkeypatch.setattr(output_at.OutputFolder, "publish", publishing)
    out, report = tmp_path / "out", tmp_path / "r.json"
    assert main(words(case, folder, out, "--report", str(report))) == 0
    assert {NAME, "_SUCCESS"} < seen[0] == {file.name for file in out.iterdir()}
    record = json.loads((out / NAME).read_text())
    assert "--out" in record["request"]["line"]
    assert envelope.with_times(record["report"]) == json.loads(report.read_text())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("error", [OutputError("the disk is full"), KeyboardInterrupt()])
def test_what_fails_afterwards_says_that_outputs_stand(
    case: str, error: BaseException, folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    monkeypatch.setattr(telling.Telling, "draw", raising(error))
    assert main(words(case, folder, out)) in (2, 130)
    assert capsys.readouterr().err.endswith(f"; the outputs are whole in {out}\n")
    monkeypatch.undo()
    assert main(["report", str(out)]) == 0


@pytest.mark.parametrize("case", CASES)
def test_what_fails_before_leaves_nothing(
    case: str, folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(envelope, "versions", raising(InputError("the lanes are gone")))
    assert main(words(case, folder, tmp_path / "out")) == 2
    assert capsys.readouterr().err.endswith("error: the lanes are gone\n")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_of_the_record_leaves_nothing(tmp_path: Path) -> None:
    with output_at.output_at(tmp_path / "out") as own:
        assert own is not None
        own.assemble({}, pa.schema([("a", pa.int64())]))
        (own.whole / NAME).mkdir()
        with pytest.raises(IsADirectoryError):
            own.commit("{}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["removed", "damaged"])
def test_lanes_that_go_while_they_are_read_are_told(
    what: str, folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    cache, out = tmp_path / "cache", tmp_path / "out"
    read = reader.lane_batches

    def reading(*given: Any, **how: Any) -> Any:
        for lane in cache.rglob("*.parquet"):
            if what == "removed":
                lane.unlink()
            else:
                lane.write_bytes(os.urandom(lane.stat().st_size))
        return read(*given, **how)

    for module in ("lane_task", "slices"):
        monkeypatch.setattr(f"engine.jobs.replay.{module}.lane_batches", reading, raising=False)
    assert main(words("replay", folder, out, "--cache", str(cache))) == 2
    said = capsys.readouterr().err
    assert "prepared lanes" in said
    assert (
        "were removed or damaged; remove what is left with winnow cache clean, and the --cache"
        in said
    )
    assert not out.exists()


def test_a_manifest_that_is_no_text_is_of_no_lanes(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert main(words("replay", folder, tmp_path / "first", "--cache", str(cache))) == 0
    (manifest,) = cache.rglob("manifest.json")
    whole = json.loads(manifest.read_text())
    manifest.write_bytes(b"\xff" * 600)
    assert main(words("replay", folder, tmp_path / "again", "--cache", str(cache))) == 0
    assert json.loads(manifest.read_text()) == whole


@pytest.mark.parametrize("what", ["truncated", "removed"])
def test_a_stream_that_changes_during_a_look_up_is_told(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, path = 300_000, tmp_path / "left.parquet"
    random = np.random.default_rng(5).integers(0, 2**60, rows)
    pq.write_table(pa.table({"t": np.arange(rows), "k": random}), path, row_group_size=50_000)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "fact.parquet")
    look = lookup_run.normalise

    def changing(*given: Any, **how: Any) -> Any:
        if path.exists():
            os.truncate(path, 100_000) if what == "truncated" else path.unlink()
        return look(*given, **how)

    monkeypatch.setattr(lookup_run, "normalise", changing)
    assert main(words("lookup", tmp_path, tmp_path / "out")) == 2
    said = capsys.readouterr().err
    assert "the stream archive: file " in said
    assert "left.parquet changed while it was read: " in said
    assert {own.name for own in tmp_path.iterdir()} <= {"left.parquet", "fact.parquet"}


def test_parts_of_a_file_that_was_truncated_are_refused(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.parquet", 300_000
    random = np.random.default_rng(5).integers(0, 2**60, rows)
    pq.write_table(pa.table({"k": random}), path, row_group_size=50_000)
    parts = Rows(open_archive(str(path), "left"), (), tmp_path).parts(["k"], size=10_000)
    assert next(parts).table.num_rows == 10_000
    os.truncate(path, 100_000)
    with pytest.raises(InputError, match=r"left archive: file .*a.parquet changed while it was"):
        list(parts)
