"""Prepared lanes in an object store: nothing of a job is then on a disk that machines share."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from storage_cases import BUCKET, SECRET, Store, needs_store, put, served, write
from thorough import guards

from engine.archives.roles import Roles
from engine.archives.source import open_archive
from engine.commands import main
from engine.lanes.manifest import MANIFEST, Prepared
from engine.lanes.prepare import prepare_cached
from engine.runtime.executors import SerialExecutor
from engine.runtime.storage.listing import dataset
from engine.runtime.storage.run_folders import OWNER
from engine.runtime.storage.uris import Uri, storing

pytest.importorskip("obstore", reason="obstore is not installed: make extras")
pytestmark = needs_store
T = TypeVar("T")
R = TypeVar("R")
WORDS = ["--time", "t", "--importance", "i", "--window", "50"]
JOBS: dict[str, list[str]] = {
    "replay": ["--memory", "20", "--policy", "prob", "--lanes", "3"],
    "replay of shares": ["--memory", "10%", "--policy", "prob", "--lanes", "2"],
    "replay by value": ["--memory", "20", "--policy", "yield"],
    "replay of groups": ["--memory", "10%", "--policy", "age", "--partition-by", "word"],
    "replay of text": ["--memory", "20", "--policy", "prob", "--lanes", "3"],
    "replay of CSV": ["--memory", "20", "--policy", "prob", "--lanes", "3"],
    "replay of bad rows": ["--memory", "20", "--policy", "prob", "--bad-rows", "quarantine"],
    "replay of facts": ["--memory", "20", "--policy", "prob", "--lanes", "2"],
    "replay of all": ["--lanes", "2"],
    "sample": ["--fraction", "0.4", "--lanes", "2"],
    "bound": ["--memory", "20"],
}


class FarExecutor(SerialExecutor):
    """Sends tasks and results as bytes, in which no path of this machine may be."""

    def __init__(self, home: Path) -> None:
        self._home = str(home).encode()
        self.sent = 0

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        for item in items:
            work, own = self._over((function, item))
            yield self._over(work(own))

    def _over(self, content: Any) -> Any:
        sent = pickle.dumps(content)
        assert self._home not in sent, content
        self.sent += 1
        return pickle.loads(sent)  # noqa: S301 - our own


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return archives with a column of text, a wrong importance, and a relation of facts."""
    folder = write(tmp_path_factory.mktemp("archives"), number=1_500)
    for side in ("left", "right"):
        for file in (folder / side).iterdir():
            table = pq.read_table(file, partitioning=None)
            words = pa.array([f"w{k % 3}" for k in table.column("k").to_pylist()])
            importance = table.column("i").to_pylist()
            bad = table.append_column("word", words)
            pq.write_table(bad, file)
            odd = pa.array([float("nan"), *importance[1:]])
            for name, content in (("bad", bad.set_column(2, "i", odd)), ("csv", bad)):
                place = folder / name / side
                place.mkdir(parents=True, exist_ok=True)
                if name == "csv":
                    pv.write_csv(content, place / f"{file.stem}.csv")
                else:
                    pq.write_table(content, place / file.name)
    facts = pa.table({"a": list(range(200)), "b": [k // 2 * 2 for k in range(200)]})
    (folder / "fact").mkdir()
    pq.write_table(facts, folder / "fact" / "0.parquet")
    return folder


def sorted_rows(place: str | Path) -> pa.Table:
    """Return the rows of outputs, in one order."""
    table = dataset(place).to_table()
    return table.sort_by([(name, "ascending") for name in table.column_names])


def asked(job: str, place: str, out: str, cache: str) -> list[str]:
    """Return a command line."""
    inner = {"replay of bad rows": "/bad", "replay of CSV": "/csv"}.get(job, "")
    streams = ["--left", f"{place}{inner}/left", "--right", f"{place}{inner}/right"]
    if job == "replay of facts":
        streams += ["--fact", f"{place}/fact", "--fact-left", "a", "--fact-right", "b"]
    keys = ["--on", "word" if job == "replay of text" else "k"]
    found = [job.partition(" ")[0], *streams, *keys, *WORDS, *JOBS[job]]
    return [*found, "--out", out, "--cache", cache]


@pytest.mark.parametrize("job", sorted(JOBS))
def test_no_task_needs_a_folder_that_machines_share(
    store: Store, folder: Path, tmp_path: Path, job: str
) -> None:
    far, name = FarExecutor(folder.parent.parent), job.replace(" ", "-")
    uri = put(store, folder, "far")
    assert main(asked(job, str(folder), f"{tmp_path}/out", f"{tmp_path}/cache")) == 0
    line = asked(job, uri, f"{uri}-out/{name}", f"{uri}-cache/{name}")
    assert main([*line, "--engine", "far", *store.words()], engines={"far": lambda: far}) == 0
    assert far.sent > 3
    with storing(store.options):
        found = sorted_rows(Uri(f"{uri}-out/{name}"))
    wanted = sorted_rows(tmp_path / "out")
    assert wanted.num_rows > 20
    assert found.equals(wanted)
    kept = store.keys(f"far-cache/{name}")
    assert not any("_work" in key or key.endswith(OWNER) for key in kept)
    assert not any(SECRET.encode() in store.read(f"far-cache/{name}/{key}") for key in kept)


def prepared(uri: str, cache: Uri, options: dict[str, str]) -> Prepared:
    """Prepare lanes as `winnow prepare` does."""
    with storing(options):
        archives = (open_archive(Uri(f"{uri}/{side}"), side) for side in ("left", "right"))
        roles = Roles(("k",), "t", "i")
        return prepare_cached(
            *archives, roles, roles, cache=Uri(cache, tuple(options.items())), lanes=2,
            bad_rows="error", payload=False, executor=SerialExecutor(),
        )  # fmt: skip


def test_lanes_are_found_again_and_mended(store: Store, folder: Path) -> None:
    uri = put(store, folder, "again")
    cache = Uri(f"s3://{BUCKET}/again-cache")
    first = prepared(uri, cache, store.options)
    store.writes()
    again = prepared(uri, cache, store.options)
    assert again == first
    assert store.writes() == []
    key = next(key for key in store.keys("again-cache") if key.endswith("left.parquet"))
    store.remove_object(f"again-cache/{key}")
    mended = prepared(uri, cache, store.options)
    assert mended.folder != first.folder
    assert mended.lanes == first.lanes
    assert any(key.endswith("left.parquet") for key in store.keys("again-cache"))
    runs = {key.split("/")[1] for key in store.keys("again-cache")} - {MANIFEST}
    assert runs == {mended.folder.name}


@guards("engine/lanes", "engine/runtime", "tests/jobs/test_storage_lanes.py")
def test_a_kill_leaves_no_lanes_and_the_next_run_cleans_up(store: Store, folder: Path) -> None:
    uri = put(store, folder, "killed")
    line = ["prepare", "--left", f"{uri}/left", "--right", f"{uri}/right", "--on", "k"]
    line += ["--time", "t", "--importance", "i", "--lanes", "2", "--engine", "local"]
    line += ["--cache", f"s3://{BUCKET}/killed-cache", *store.words()]
    script = "import sys; from engine.commands import main; sys.exit(main(sys.argv[1:]))"

    def run(at: int | None) -> int:
        with subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-c", script, *line], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as job:  # fmt: skip
            if at is not None:
                store.kill(job.pid, at, before=at % 2 == 0)
            return job.wait()

    store.writes()
    assert run(None) == 0
    writes, wanted = store.writes(), store.keys("killed-cache")
    last = next(at for at, path in enumerate(writes) if path.endswith(MANIFEST))
    store.remove("killed-cache")
    for at in range(0, last, 2):
        assert run(at) == -9
        assert not any(key.endswith(MANIFEST) for key in store.keys("killed-cache"))
    assert run(None) == 0
    assert len(store.keys("killed-cache")) == len(wanted)


def test_reports_profiles_plots_and_job_files_are_objects(
    store: Store, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = put(store, folder, "told")
    there = f"{uri}-files"
    streams = ["--left", f"{uri}/left", "--right", f"{uri}/right", "--on", "k", *WORDS]
    files = ["--report", f"{there}/r.json", "--html", f"{there}/r.html", "--plot", f"{there}/r.svg"]
    line = ["replay", *streams, "--memory", "10%", "--policy", "age", "--engine", "local"]
    own = ["--out", f"{there}/profile.json", "--plots", f"{there}/plots"]
    cache = ["--cache", f"{uri}-kept"]
    memory = ["--memory", "20", "--engine", "local"]
    assert main(["profile", *streams, *memory, *own, *cache, *store.words()]) == 0
    assert main([*line, "--profile", f"{there}/profile.json", *files, *cache, *store.words()]) == 0
    kept = store.keys("told-files")
    assert {"r.json", "r.html", "r.svg", "profile.json"} < set(kept)
    assert any(key.startswith("plots/") and key.endswith(".png") for key in kept)
    assert not any(key.endswith(".tmp") for key in kept)
    assert b"--storage-option secret_key=... " in store.read("told-files/profile.json")
    job = tmp_path / "job.toml"
    table = {"left": f"{uri}/left", "right": f"{uri}/right", "on": "k", "time": "t"}
    table |= {"importance": "i", "window": "50", "memory": "10%", "policy": "prob"}
    job.write_text("".join(f'{name} = "{value}"\n' for name, value in table.items()))
    store.put(job, "told-files/job.toml")
    capsys.readouterr()
    asks = ["--engine", "local", "--report", f"{tmp_path}/r.json", *cache]
    assert main(["replay", "--job", f"{there}/job.toml", *asks, *store.words()]) == 0
    joins = "".join(f'{name} = "{value}"\n' for name, value in table.items() if name != "memory")
    job.write_text(f'memory = "10%"\n[[join]]\nname = "one"\n{joins.replace("policy", "#")}')
    store.put(job, "told-files/joins.toml")
    shares = ["allocate", f"{there}/joins.toml", "--plots", f"{there}/shares", *cache]
    status = main([*shares, "--engine", "local", *store.words()])
    assert status == 0, capsys.readouterr().err
    assert any(key.startswith("shares/") for key in store.keys("told-files"))
    grid = ["--memory", "10,20", "--policies", "prob", "--out", f"{there}/sweep", *files]
    assert main(["sweep", *streams, *grid, *cache, "--engine", "local", *store.words()]) == 0
    for key in (key for key in store.keys("told-files") if not key.endswith(".png")):
        assert SECRET.encode() not in store.read(f"told-files/{key}"), key
    told = capsys.readouterr()
    missing = ["replay", "--job", f"{there}/none.toml", *store.words()]
    assert main(missing) == 2
    assert f"job file {there}/none.toml cannot be read" in capsys.readouterr().err
    assert SECRET not in told.out + told.err


def test_places_that_cannot_be_written_are_told_first(
    store: Store, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = ["--left", f"{folder}/left", "--right", f"{folder}/right", "--on", "k", *WORDS]
    line = ["replay", *streams, "--memory", "20", "--engine", "local", *store.words()]
    for words in (["--report", "x.json"], ["--plot", "x.svg"], ["--html", "x.html"]):
        assert main([*line, words[0], f"s3://no-such-bucket/{words[1]}"]) == 2
        (said,) = capsys.readouterr().err.strip().splitlines()[-1:]
        assert "check the name of the bucket" in said
    assert main([*line, "--cache", "s3://no-such-bucket/lanes"]) == 2
    assert "check the name of the bucket" in capsys.readouterr().err
