"""Bad input on the command line: exit status 2, what is wrong and where, and nothing written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import Streams, arguments, read, stream, streams, table, winnow

from engine.commands import main
from engine.jobs import frame, output
from engine.jobs.replay import lane_task
from engine.replay.lane import LaneReplay
from engine.runtime.executors import SerialExecutor, ThreadExecutor

OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "policy": ({"policy": "simprob"}, r"no policy 'simprob'.*rand.*Did you mean 'simpprob'\?"),
    "parameter": ({"param": "alfa=2"}, r"dgl has no parameter 'alfa'.*Did you mean 'alpha'\?"),
    "no equals": ({"param": "alpha"}, r"--param is 'alpha'; write name=value"),
    "alpha": ({"param": "alpha=0"}, r"alpha of policy dgl is 0; it must be greater than 0"),
    "beta": ({"param": "beta=nan"}, r"beta of policy dgl is nan; give a finite number"),
    "word": ({"param": "initial=imp"}, r"initial of policy dgl is 'imp'; give one of simpprob"),
    "curve": ({"policy": "age", "param": "curve=1,x"}, r"curve of policy age is '1,x'"),
    "buckets": ({"policy": "age", "param": "buckets=2.5"}, r"buckets .* 2.5; give a whole number"),
    "many": ({"policy": "age", "param": "buckets=1e18"}, r"buckets .* at most 100000"),
    "no function": ({"policy": "custom"}, r"custom needs --param function=module:name"),
    "module": (
        {"policy": "custom", "param": "function=nowhere:f"},
        r"'nowhere:f' cannot be loaded \(No module named 'nowhere'\)",
    ),
    "no callable": (
        {"policy": "custom", "param": "function=replay_cases:SCORE"},
        r"function of policy custom is .*; give a function",
    ),
    "estimator": ({"estimator": "windw"}, r"estimator is 'windw'.*Did you mean 'window'\?"),
    "probe": ({"probe": "before_admision"}, r"Did you mean 'before_admission'\?"),
    "combine": ({"combine": "prod"}, r"combine is 'prod'; choose one of min.*'product'"),
    "device": ({"device": "tpu"}, r"--device is 'tpu'; choose one of auto, cpu, gpu"),
    "gpu": ({"device": "gpu"}, r"--device gpu: .*use --device auto or cpu"),
    "rows": ({"bad_rows": "quarantined"}, r"--bad-rows is .*Did you mean 'quarantine'\?"),
    "columns": ({"columns": "id"}, r"--columns is 'id'.*Did you mean 'ids'\?"),
    "engine": ({"engine": "locl"}, r"--engine is 'locl'.*Did you mean 'local'\?"),
    "lanes": ({"lanes": 0}, r"--lanes is 0; it must be 1 or more"),
    "too many lanes": ({"lanes": 10**9}, r"more than 65536 lanes"),
    "seed": ({"seed": 2**70}, r"--seed is 1180591620717411303424; it must fit 64 bits"),
    "window": ({"window": -5}, r"window -5 of stream left must be 0 ticks or more"),
    "no window": ({"window": None}, r"--window is missing"),
    "half a window": ({"window": None, "window_left": 3}, r"--window is missing"),
    "duration": ({"window": "10min"}, r"window 10min .* plain numbers: give a number of ticks"),
    "part of a tick": ({"window": "1.5"}, r"window 1.5 .* is not a whole number of ticks"),
    "no duration": ({"window": "soon"}, r"window 'soon' .* neither a number of ticks nor"),
    "long window": ({"window": 2**62}, r"window 4611686018427387904 .* too long: give at most"),
    "memory": ({"memory": -1}, r"--memory is '-1'; give a whole number of tuples, 0 or more"),
    "part of a tuple": ({"memory": "10.5"}, r"--memory is '10.5'"),
    "percentage": ({"memory": None, "memory_left": "-5%"}, r"--memory-left is '-5%'"),
    "both memories": ({"memory_left": 3}, r"--memory and --memory-left or --memory-right exclude"),
    "start": ({"start_ts": "2024-05-01"}, r"--start-ts is '2024-05-01', but time is a plain"),
    "far start": ({"start_ts": "9" * 30}, r"--start-ts is '9+', which is beyond 2\^62 ticks"),
    "no left": ({"left": None}, r"--left is missing"),
    "no key": ({"on": None}, r"--on is missing: name the column, or --left-on and --right-on"),
    "no time": ({"time": None}, r"--time is missing"),
    "key": ({"on": "key"}, r"left archive \S+left.parquet has no column 'key': it has t, k, i, p"),
    "right key": ({"right_on": "kk"}, r"right archive \S+ has no column 'kk'.*Did you mean 'k'\?"),
    "time": ({"time": "ts"}, r"left archive \S+left.parquet has no column 'ts'"),
    "importance": ({"right_importance": "imp"}, r"right archive \S+ has no column 'imp'"),
    "partition": ({"partition_by": "site"}, r"left archive \S+ has no column 'site'"),
    "unequal keys": ({"left_on": "k,p"}, r"left names 2 join attributes \(k, p\), stream right 1"),
    "key types": (
        {"left_on": "p"},
        r"column p of the left archive \(string\).*column k of.*cast one",
    ),
    "time type": ({"time": "p"}, r"left.parquet: time column p has type string"),
    "importance type": ({"importance": "p"}, r"importance column p has type string: it must be a"),
    "latin key": ({"on": "k\udcff"}, r"--on: 'k\\udcff' is not in UTF-8: write it in UTF-8"),
    "latin time": ({"time": "t\udcff"}, r"--time: 't\\udcff' is not in UTF-8: write it in UTF-8"),
    "no job": ({"job": "nowhere.toml"}, r"job file nowhere.toml cannot be read"),
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("archives"))


@pytest.fixture
def folder(archives: Streams, tmp_path: Path) -> Iterator[Path]:
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).write_bytes((archives.folder / name).read_bytes())
    return tmp_path


class Refused:
    """Runs commands that must be refused and leave everything as it was."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, folder: Path, pattern: str, **options: Any) -> str:
        """Return what was said."""
        before = everything(folder)
        assert main(arguments(folder, **options)) == 2
        shown, said = self._capsys.readouterr()
        assert shown == ""
        assert said.startswith("winnow replay: error: ")
        assert said.count("\n") == 1
        assert re.search(pattern, said), said
        assert everything(folder) == before
        return said


def everything(folder: Path) -> dict[str, int]:
    """Return every file and folder with its time of change; a cache of lanes may be begun."""
    paths = [path for path in folder.rglob("*") if path != folder / "cache"]
    return {str(path): path.stat().st_mtime_ns for path in paths}


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    return Refused(capsys)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_mean_nothing(folder: Path, refused: Refused, name: str) -> None:
    options, pattern = OPTIONS[name]
    refused(folder, pattern, **options)


@pytest.mark.parametrize("words", [["--lanes=x"], ["--windw=3"], ["--seed=1.5"]])
def test_words_that_are_none_of_an_option(folder: Path, words: list[str]) -> None:
    before = everything(folder)
    assert main([*arguments(folder), *words]) == 2
    assert everything(folder) == before


def replaced(folder: Path, side: str, column: str, cells: dict[int, Any]) -> None:
    path = folder / f"{side}.parquet"
    archive = pq.read_table(path)
    values = archive.column(column).to_pylist()
    for at, cell in cells.items():
        values[at] = cell
    kind = pa.float64() if any(isinstance(v, float) for v in values) else pa.int64()
    at = archive.column_names.index(column)
    pq.write_table(archive.set_column(at, column, pa.array(values, kind)), path)


FAULTS = {
    "null time": ("t", {3: None, 7: None}, r"column t: 2 rows are null \(rows 3, 7\)"),
    "NaN time": ("t", {4: float("nan")}, r"column t: 1 row is NaN \(row 4\)"),
    "infinite time": ("t", {4: float("inf")}, r"column t: 1 row is infinite \(row 4\)"),
    "part of a tick": (
        "t",
        {0: 0.5},
        r"column t: 1 row is not a whole number of ticks .*row 0.* scaling times to whole",
    ),
    "far time": (
        "t",
        {2: 2**62, 9: -(2**62) - 1},
        r"2 rows are beyond 2\^62 ticks \(rows 2, 9",
    ),
    "null importance": ("i", {1: None}, r"column i: 1 row is null \(row 1\)"),
    "NaN importance": (
        "i",
        dict.fromkeys(range(20), float("nan")),
        r"20 rows are NaN .*, \.\.",
    ),
    "infinite importance": ("i", {8: float("inf")}, r"column i: 1 row is infinite \(row 8\)"),
    "less than no importance": (
        "i",
        {8: -0.5, 9: -1.0},
        r"2 rows are negative \(rows 8, 9\)",
    ),
    "huge importance": ("i", {5: 1e101}, r"column i: 1 row is greater than 1e100 \(row 5\)"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_bad_rows(folder: Path, refused: Refused, name: str, side: str) -> None:
    column, cells, pattern = FAULTS[name]
    replaced(folder, side, column, cells)
    refused(folder, rf"file \S*{side}\.parquet: .*{pattern}")
    refused(folder, pattern, out=folder / "new" / "folders" / "out")
    found = winnow(folder, bad_rows="quarantine")
    assert found.report["rejected"][side] == len(cells)
    assert sum(found.report["rejected"].values()) == len(cells)


def test_every_fault_is_told_at_once(folder: Path, refused: Refused) -> None:
    replaced(folder, "left", "i", {1: None, 2: float("nan"), 3: -1.0})
    replaced(folder, "right", "t", {4: None})
    said = refused(folder, "--bad-rows quarantine")
    for words in (r"left.parquet: column i: 1 row is null", "NaN", "negative", "right.parquet"):
        assert re.search(words, said)


def folder_of(folder: Path, make: Callable[[Path], None]) -> Path:
    (folder / "left").mkdir()
    pq.write_table(table(stream(5)), folder / "left" / "a.parquet")
    make(folder / "left" / "b.parquet")
    return folder / "left"


def test_mixed_schemas(folder: Path, refused: Refused) -> None:
    words = pa.array([str(i) for i in range(150)])
    left = folder_of(
        folder, lambda path: pq.write_table(table(stream(6)).set_column(1, "k", words), path)
    )
    refused(folder, r"column k has type int64 in \S+a\.parquet and type string in", left=left)


def test_truncated_and_corrupt_parquet(folder: Path, refused: Refused) -> None:
    raw = (folder / "left.parquet").read_bytes()
    for content in (raw[:-30], raw[: len(raw) // 2], b"", b"PAR1", raw[100:]):
        (folder / "left.parquet").write_bytes(content)
        refused(folder, r"left archive: file \S+left.parquet is corrupt, truncated or no Parquet")
    damaged = bytearray(raw)
    damaged[4:200] = b"\xff" * 196
    (folder / "left.parquet").write_bytes(damaged)
    refused(folder, r"left.parquet is corrupt")


def test_nothing_there(folder: Path, refused: Refused) -> None:
    refused(folder, r"nothing is at \S+lft.parquet: .*'left.parquet'", left=folder / "lft.parquet")
    refused(folder, r"no file matches \S+\*\.csv", right=folder / "*.csv")
    (folder / "empty").mkdir()
    refused(folder, r"right archive: folder \S+empty holds no data file", right=folder / "empty")
    (folder / "notes.txt").write_text("no archive")
    refused(folder, r"notes.txt is no archive by its name", left=folder / "notes.txt")


def test_places_that_cannot_be_written(folder: Path, refused: Refused) -> None:
    (folder / "file").write_text("x")
    (folder / "folder").mkdir()
    refused(folder, r"output folder \S+folder exists: remove it", out=folder / "folder")
    refused(folder, r"output folder \S+file exists", out=folder / "file")
    refused(folder, r"made: Not a directory; give another --out", out=folder / "file" / "out")
    refused(folder, r"report \S+folder is a folder", report=folder / "folder")
    refused(folder, r"report \S+r\.json cannot be written", report=folder / "file" / "r.json")
    (folder / "out").symlink_to(folder / "nowhere")
    assert main(arguments(folder)) == 2


def test_job_files(folder: Path, refused: Refused) -> None:
    job = folder / "job.toml"
    for content, pattern in (
        ('polcy = "dgl"', r"job.toml: unknown option 'polcy'. Did you mean 'policy'\?"),
        ("policy = ", r"job.toml is no TOML"),
        ("param = 3", "--param is 3; write name=value"),
        ("lanes = true", "--lanes is True; give a whole number"),
        ('lanes = "x"', r"--lanes is 'x'"),
    ):
        job.write_text(content)
        refused(folder, pattern, job=job)


class FailingError(Exception):
    """A failure that is nobody's fault."""


def failing_push(times: int) -> Callable[..., Any]:
    """Return a `LaneReplay.push` that fails once `times` runs of output were handed out."""
    true_push, count = LaneReplay.push, [0]

    def push(self: LaneReplay, *args: Any) -> Iterator[Any]:
        for out in true_push(self, *args):
            yield out
            count[0] += 1
            if count[0] >= times:
                raise FailingError

    return push


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_failure_in_mid_replay_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    monkeypatch.setattr(LaneReplay, "push", failing_push(2))
    monkeypatch.setattr(lane_task, "lane_batches", small_batches)
    with pytest.raises(FailingError):
        main(arguments(folder, lanes=lanes, out=folder / "new" / "out"))
    assert {path.name for path in folder.iterdir()} == {"left.parquet", "right.parquet", "cache"}
    monkeypatch.undo()
    assert main(arguments(folder, lanes=lanes)) == 0
    assert read(folder).outputs


def small_batches(left: Path | None, right: Path | None, **options: Any) -> Iterator[Any]:
    from engine.lanes.reader import lane_batches  # noqa: PLC0415 - the patched name is another

    return lane_batches(left, right, batch_rows=40, **options)


@pytest.mark.parametrize("where", ["commit", "prepare"])
def test_a_failure_elsewhere_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise FailingError

    if where == "commit":
        monkeypatch.setattr(output.Output, "commit", fail)
    else:
        monkeypatch.setattr(frame, "prepare_cached", fail)
    with pytest.raises(FailingError):
        main(arguments(folder))
    names = {path.name for path in folder.iterdir()} - {"cache"}
    assert names == {"left.parquet", "right.parquet"}


def test_an_interrupt_is_no_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SerialExecutor, "map", interrupt)
    monkeypatch.setattr(ThreadExecutor, "map", interrupt)
    assert main(arguments(folder)) == 130
    assert "nothing is left half-written" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} <= {"left.parquet", "right.parquet", "cache"}


def test_an_output_folder_that_appears_meanwhile_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def late(*args: Any, **options: Any) -> Any:
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / "theirs").touch()
        return true(*args, **options)

    true = frame.prepare_cached
    monkeypatch.setattr(frame, "prepare_cached", late)
    assert main(arguments(folder)) == 2
    assert "appeared while the job ran" in capsys.readouterr().err
    assert [path.name for path in (folder / "out").iterdir()] == ["theirs"]
    assert not (folder / "report.json").exists()
    assert not list(folder.glob(".*"))
