"""How a dataset gets its place: the parts that were reported, whole, and nothing else."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import job, streams
from places import ROOT

from engine.jobs.output import PartWriter, write_file
from engine.jobs.output_at import OutputFolder, output_at
from engine.jobs.part import reported
from engine.jobs.replay.run import run_replay
from engine.runtime.errors import OutputError
from engine.runtime.executors import SerialExecutor
from engine.runtime.storage.disk import (
    claim,
    full_disk_reported,
    has_ended,
    lease_mark,
    remove_folder,
    undo_unfinished,
    undone_at_end,
    whole_file,
)

TABLE = pa.table({"x": [1, 2, 3]})


def tree(folder: Path) -> set[str]:
    """Return everything in a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_only_reported_parts_are_in_the_dataset(tmp_path: Path) -> None:
    with output_at(tmp_path / "new" / "out") as output:
        assert output is not None
        write_file(output.draft / "part-00000.aaaa.parquet", TABLE)
        write_file(output.draft / "part-00000.bbbb.parquet", TABLE.slice(1))  # of a lost attempt
        write_file(output.draft / "part-00001.cccc.parquet", TABLE.slice(2))
        (output.whole / "_beside.json").write_text("{}")
        output.assemble({"part-00001.cccc.parquet": 1, "part-00000.aaaa.parquet": 3}, TABLE.schema)
        output.commit()
        late = output.draft / "part-00002.dddd.parquet"
        write_file(late, TABLE)  # a straggler has it open still
    assert tree(tmp_path) == {
        "new", "new/out", "new/out/_SUCCESS", "new/out/_beside.json", "new/out/part-00000.parquet",
        "new/out/part-00001.parquet",
    }  # fmt: skip
    assert pq.read_table(tmp_path / "new" / "out").column("x").to_pylist() == [1, 2, 3, 3]
    with pytest.raises(FileNotFoundError):
        write_file(late, TABLE)


def test_no_part_is_an_empty_dataset(tmp_path: Path) -> None:
    with output_at(tmp_path / "out") as output:
        assert output is not None
        write_file(output.draft / "part-00000.aaaa.parquet", TABLE)
        output.assemble({}, TABLE.schema)
        output.commit()
    assert pq.read_table(tmp_path / "out").equals(TABLE.schema.empty_table())


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"part-00000.a.parquet": 4}, "holds 3 rows, and its task has reported 4: run it again"),
        ({"part-00000.x.parquet": 3}, "is not there: give a folder that the driver and all exec"),
        ({"part-00000.a.parquet": 3, "part-00000.b.parquet": 3}, "came twice"),
        ({"part-00001.half.parquet": 3}, "is damaged"),
    ],
)
def test_what_was_reported_must_be_there(tmp_path: Path, parts: dict[str, int], why: str) -> None:
    def committed() -> None:
        with output_at(tmp_path / "out") as output:
            assert output is not None
            for name in ("a", "b"):
                write_file(output.draft / f"part-00000.{name}.parquet", TABLE)
            content = (output.draft / "part-00000.a.parquet").read_bytes()
            (output.draft / "part-00001.half.parquet").write_bytes(content[:-20])
            output.assemble(parts, TABLE.schema)
            output.commit()

    with pytest.raises(OutputError, match=why):
        committed()
    assert tree(tmp_path) == set()


def test_rows_that_were_reported_without_a_part_are_an_error() -> None:
    assert reported([("a", 3), (None, 0)]) == {"a": 3}
    with pytest.raises(OutputError, match="2 rows of the output were not written"):
        reported([("a", 3), (None, 2)])


def test_a_place_that_is_taken_meanwhile_is_kept(tmp_path: Path) -> None:
    output = OutputFolder(tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other").touch()
    output.assemble({}, TABLE.schema)
    with pytest.raises(OutputError, match="appeared while"):
        output.commit()
    output.discard()
    assert tree(tmp_path) == {"out", "out/other"}


def full(*_args: object, **_kwargs: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("held", [1, 10**6])
def test_a_full_disk_is_told_with_its_space_and_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("engine.jobs.output.GROUP_ROWS", held)
    writer = PartWriter(tmp_path / "part")
    writer.write(TABLE)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OutputError, match=r"its disk is full \([\d,]+ of [\d,]+ bytes are free\)"):
        writer.write(TABLE) if held == 1 else writer.close()
    assert tree(tmp_path) == set()


@pytest.mark.parametrize("inside", [".", "parts", "_work/seed-42"])
def test_a_full_disk_is_told_of_the_folder_that_was_asked_for(tmp_path: Path, inside: str) -> None:
    draft = tmp_path / f".my.out.{32 * 'a'}.tmp"
    with (
        pytest.raises(OutputError, match=f"^output {re.escape(str(tmp_path / 'my.out'))} cannot"),
        full_disk_reported("output", draft / inside, "name another"),
    ):
        full()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_of_the_errors_of_a_system_only_a_full_disk_is_the_users(number: int) -> None:
    with (
        pytest.raises(OutputError, match="free space on it, or name another"),
        full_disk_reported("lanes", Path("/nowhere/at/all"), "name another"),
    ):
        raise OSError(number, "full")
    with (
        pytest.raises(OutputError, match=r"larger than the system allows: raise the limit .* or z"),
        full_disk_reported("x", Path("y"), "z"),
    ):
        raise OSError(errno.EFBIG, "File too large")
    with pytest.raises(OSError, match="broken") as raised, full_disk_reported("x", Path("y"), "z"):
        raise OSError(errno.EIO, "broken")
    assert type(raised.value) is OSError


def test_the_driver_finds_the_disk_full_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = OutputFolder(tmp_path / "out", "--plan")
    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OutputError, match="give another --plan"):
        output.assemble({}, TABLE.schema)
    output.discard()
    assert tree(tmp_path) == set()


def test_attempts_at_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    place = tmp_path / "file"
    with whole_file(place, tmp_path) as slow:
        slow.write_text("whole")
        with whole_file(place, tmp_path) as fast:
            fast.write_text("whole")
        assert place.read_text() == "whole"
        slow.write_text("half")  # and dies
        slow.unlink()
        slow.write_text("whole")
    assert place.read_text() == "whole"
    with suppress(KeyError), whole_file(place, tmp_path) as failed:
        failed.write_text("half")
        raise KeyError
    assert tree(tmp_path) == {"file"}


def test_who_writes_into_a_removed_folder_finds_it_gone(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    with (folder / "deep" / "open").open("w") as file:
        remove_folder(folder)
        file.write("late")
    assert tree(tmp_path) == set()
    with pytest.raises(FileNotFoundError):
        (folder / "deep" / "more").touch()
    remove_folder(folder)


@contextmanager
def another(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has begun an output, until it is killed."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from engine.jobs.output_at import OutputFolder\n"
        "own = OutputFolder(Path(sys.argv[1]))\n"
        "print(own.draft.parent, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", program, str(place)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_what_a_killed_job_left_is_removed_and_what_a_live_one_writes_is_not(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with another(out) as dead, another(out) as live, another(tmp_path / "out.b") as beside:
        assert dead.stdout
        assert live.stdout
        assert beside.stdout
        left, kept, others = (Path(p.stdout.readline().strip()) for p in (dead, live, beside))
        (left / "parts" / "part-00000.aaaa.parquet").touch()
        (kept / "parts" / "part-00000.bbbb.parquet").touch()
        for process in (dead, beside):
            process.kill()
            process.wait()
        elsewhere = tmp_path / f".out.{'0' * 32}.tmp"
        unmarked = tmp_path / f".out.{'1' * 32}.tmp"
        for folder in (elsewhere, unmarked):
            folder.mkdir()
        mark = (left / "owner").read_text()
        (elsewhere / "owner").write_text(f"another{mark}")
        with output_at(out) as output:
            assert output is not None
            assert not left.exists()
            assert (kept / "parts" / "part-00000.bbbb.parquet").exists()
            assert others.exists()  # of another output
            assert elsewhere.exists()
            assert unmarked.exists()
            write_file(output.draft / "part-00000.cccc.parquet", TABLE)
            output.assemble({"part-00000.cccc.parquet": 3}, TABLE.schema)
            output.commit()
    assert pq.read_table(out).equals(TABLE)
    assert tree(tmp_path) >= {kept.name, others.name}


def test_lanes_that_a_killed_job_left_are_removed_whichever_they_are(tmp_path: Path) -> None:
    streams(tmp_path, seed=1, rows=20)
    cache = tmp_path / "cache"
    dead, live = (cache / f".{lane * 40}.{lane * 32}.tmp" for lane in "ab")
    for folder in (dead, live):
        (folder / "lane-00000").mkdir(parents=True)
        claim(folder)
    *here, pid, started = lease_mark().split()
    (dead / "owner").write_text(" ".join([*here, pid, f"{started}1"]))
    run_replay(job(tmp_path), SerialExecutor())
    assert list(cache.rglob("owner")) == [live / "owner"]
    assert not dead.exists()
    assert (live / "lane-00000").exists()
    assert {path.name for path in cache.iterdir() if path.name.startswith(".")} == {live.name}


def test_who_is_gone() -> None:
    own = lease_mark()
    *here, pid, started = own.split()
    assert not has_ended(own)
    assert has_ended(" ".join([*here, pid, f"{started}1"]))  # its number is another's now
    assert not has_ended(" ".join(["elsewhere", *here[1:], pid, f"{started}1"]))
    assert not has_ended("")
    assert not has_ended("torn")
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        mark = " ".join([*here, str(child.pid), started])
        until = time.monotonic() + 60
        while not (found := has_ended(mark)) and time.monotonic() < until:
            time.sleep(0.05)
        assert found
    assert has_ended(mark)


def test_a_process_that_ends_waits_for_what_is_being_undone(tmp_path: Path) -> None:
    """A block's own end and the process's may meet: neither leaves the other's work half-done."""
    folder, undone, waiting = tmp_path / "made", Event(), Event()

    def undo() -> None:
        waiting.set()
        undone.wait(0.2)  # nobody sets it
        remove_folder(folder)

    def work() -> None:
        with undone_at_end(undo):
            (folder / "deep").mkdir(parents=True)

    other = Thread(target=work)
    other.start()
    assert waiting.wait(10)
    undo_unfinished()
    assert not folder.exists()
    assert not list(tmp_path.iterdir())
    other.join()


@pytest.mark.parametrize("when", [0, 1])
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_being_undone_when_interrupted_is_undone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int, times: int
) -> None:
    """At once, as a notebook goes on; when interrupted twice, where the process ends."""
    rmtree, calls = shutil.rmtree, []

    def interrupted(folder: Path, ignore_errors: bool) -> None:
        calls.append(folder)
        if when:
            rmtree(folder / "parts", ignore_errors=True)
        if len(calls) <= times:
            raise KeyboardInterrupt
        rmtree(folder, ignore_errors)

    monkeypatch.setattr("engine.runtime.storage.disk.shutil.rmtree", interrupted)
    output = OutputFolder(tmp_path / "above" / "out")
    (output.draft / "part").write_text("half")
    with pytest.raises(KeyboardInterrupt), undone_at_end(output.discard):
        pass
    assert bool(list(tmp_path.iterdir())) == (times > 1)
    undo_unfinished()
    assert not list(tmp_path.iterdir())
