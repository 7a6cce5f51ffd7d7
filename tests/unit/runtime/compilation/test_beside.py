"""Kernels that threads and processes need at once are each compiled once, side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from pathlib import Path

import pytest

from engine.runtime.compilation import beside, locked
from engine.runtime.compilation.beside import Beside, BesideError
from engine.runtime.compilation.compilations import COMPILED

PROGRAM = """
import sys, threading
import numpy as np
from engine.multiway.exact.screen import squares
from engine.runtime.compilation import entries
from engine.runtime.compilation.beside import BESIDE
from engine.runtime.jit import shell_sorted
from engine.runtime.compilation.compilations import COMPILED

BESIDE.most = int(sys.argv[1])
made, compiled = entries._EntryCompiler.compile_extra, []

def compile_extra(compiler, function):
    if not compiled:
        first.set()
        there.wait(1)  # it loads what is compiled beside it when this is done
    compiled.append(function.__name__)
    return made(compiler, function)

entries._EntryCompiler.compile_extra = compile_extra
first, there = threading.Event(), threading.Event()
found = []

def sort():
    values = np.array([3.0, 1.0])
    shell_sorted(values, 0, 2)
    first.set()
    found.append(values.tolist())

def square():
    first.wait()
    found.append(squares(np.array([[3.0, 4.0]])).tolist())
    there.set()

threads = [threading.Thread(target=own) for own in (sort, square, sort)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*sorted(compiled), *sorted(name.rpartition(".")[2] for name in COMPILED.names))
assert sorted(map(str, found)) == ["[1.0, 3.0]", "[1.0, 3.0]", "[25.0]"], found
"""


def run(cache: Path, most: int) -> str:
    """Run the program, and return which kernels it compiled itself, and which there were."""
    done = subprocess.run(  # noqa: S603 - this file's program
        [sys.executable, "-c", PROGRAM, str(most)], capture_output=True, text=True, check=False,
        timeout=120,
        env=os.environ | {"WINNOW_CACHE": str(cache), "WINNOW_COMPILE": "always"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_a_second_thread_needs_is_compiled_beside_the_first(tmp_path: Path) -> None:
    assert run(tmp_path, 2) == "shell_sorted shell_sorted squares"
    assert run(tmp_path, 2) == ""


def test_on_one_core_one_is_compiled_after_the_other(tmp_path: Path) -> None:
    assert run(tmp_path, 1) == "shell_sorted squares shell_sorted squares"


def test_of_two_processes_one_compiles(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: run(tmp_path, 1), range(2)))
    assert " ".join(found).split().count("shell_sorted") == 2  # compiled, and told of
    assert " ".join(found).split().count("squares") == 2


def slow(seconds: float) -> int:
    """Take a while."""
    time.sleep(seconds)
    return os.getpid()


def wrong() -> None:
    """Fail."""
    raise LookupError("no such thing")


@pytest.fixture
def processes() -> Iterator[Beside]:
    own = Beside()
    own.most = 2
    yield own
    own.stop()


def test_processes_are_kept_for_what_comes_next(processes: Beside) -> None:
    with ThreadPoolExecutor(2) as threads:
        pids = {*threads.map(lambda _: processes.call(slow, 0.3), range(2))}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert processes.call(slow, 0.0) in pids
    with pytest.raises(LookupError, match="no such thing"):
        processes.call(wrong)
    assert processes.call(slow, 0.0) in pids
    processes.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_compiles_itself_what_it_needs_first(processes: Beside) -> None:
    """Whatever those beside it do: to hand it on takes longer."""
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(processes.call, slow, 0.3)
        assert not processes.is_busy
        with processes.here():
            assert processes.is_busy
        asked.result()
    assert not processes.is_busy


def test_who_asks_is_told_that_none_is_free_or_that_it_was_killed(processes: Beside) -> None:
    pid = processes.call(slow, 0.0)
    processes.most = 1
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(processes.call, slow, 30.0)
        time.sleep(0.2)
        with pytest.raises(BesideError, match="have something to do"):
            processes.call(slow, 0.0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(BesideError, match="was killed: if memory is short"):
            asked.result()
    processes.most = 2
    assert processes.call(slow, 0.0) != pid


def test_one_with_nothing_to_do_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "IDLE", 0.1)
    monkeypatch.setattr(COMPILED, "always", COMPILED.always)
    monkeypatch.setattr(beside.BESIDE, "most", 1)
    here, there = Pipe()
    server = threading.Thread(target=beside.serve, args=(os.dup(there.fileno()),))
    server.start()
    server.join(20)
    assert not server.is_alive()
    here.close()
    there.close()


LOCKING = """
import sys, time
from pathlib import Path
from engine.runtime.compilation.locked import locked
with locked(Path(sys.argv[1]), "a"):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_lock_ends_with_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(  # noqa: S603 - this file's program
        [sys.executable, "-c", LOCKING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        begun = time.monotonic()
        with locked.locked(tmp_path, "b"):
            pass
        with monkeypatch.context() as hurried:
            hurried.setattr(locked, "PATIENCE", 0.3)
            with locked.locked(tmp_path, "a"):
                assert time.monotonic() - begun >= 0.3
        other.kill()
        with locked.locked(tmp_path, "a"):
            assert time.monotonic() - begun < locked.PATIENCE


def test_nobody_waits_where_there_are_no_locks(tmp_path: Path) -> None:
    with locked.locked(tmp_path / "none", "a"):
        pass
