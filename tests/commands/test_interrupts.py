"""Signals end a command: exit status 130, 143 or 129, one line, and nothing half-written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from thorough import guards

from engine.generate.zipf import ZipfSpec, zipf_sources

LONG = 100.0
"""Seconds after which a command has not ended at all; it would take longer by itself."""
STUCK = """
import sys, time
from pathlib import Path
from types import SimpleNamespace

from engine.commands import interrupts, main
from engine.jobs.output_at import output_at
from engine.options.command import Command
from engine.runtime.storage.disk import scratch_folder
from engine.runtime.executors import ThreadExecutor
from engine.runtime.jit import jit

def spin(rounds):
    x = 1.0
    for i in range(rounds):
        x = (x * 1.0000001 + 1.0 / (i + 1)) % 3.0
    return x

spin = jit(spin, cached=False)

def work(where):
    print("ready", flush=True)
    return spin({rounds})

def run(asked):
    spin(1)
    place = Path(sys.argv[0]).parent / "made" / "out"
    with output_at(place) as output, scratch_folder() as scratch:
        (output.draft / "part").write_text("half")
        (scratch / "more").write_text("half")
        print(scratch, flush=True)
        {call}
    return 0

interrupts.GRACE = {grace}
stuck = SimpleNamespace(COMMAND=Command("stuck", "is", ()), run=run)
sys.exit(main(None, commands={{"stuck": stuck}}))
"""
BESIDE_IT = """
import os, threading, time

from engine.commands.interrupts import end
from engine.runtime.compilation.beside import BESIDE

BESIDE.most = 2
print(BESIDE.call(os.getpid))
threading.Thread(target=BESIDE.call, args=(time.sleep, 60.0), daemon=True).start()
end("winnow")
"""
THREADS = "list(ThreadExecutor(2).map(work, [1, 2, 3]))"
HERE = "work(0)"
COMPILING = "winnow stuck: compiling kernels that no run has needed so far\n"
"""What is said of a kernel that is not kept."""


SLOWLY_LOADED = """
import sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == {name!r}:
            print("ready", flush=True)
            time.sleep(100)

sys.meta_path.insert(0, Slow())
from engine.commands import main
sys.exit(main())
"""


def begin(*words: str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, *words],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def ended(
    command: subprocess.Popen[str], times: int = 1, by: int = signal.SIGINT
) -> tuple[str, float]:
    """Interrupt a command and return its standard error and the seconds until it ended.

    One that has done its work has nothing to tell, and the signal may find it without Python.
    """
    begun = time.monotonic()
    for _ in range(times):
        with suppress(ProcessLookupError):
            os.killpg(command.pid, by)
        time.sleep(0.2)
    try:
        _, said = command.communicate(timeout=LONG)
    finally:
        command.kill()
    assert command.returncode in ([128 + by] if "stopped" in said else [0, -by])
    return said, time.monotonic() - begun


@pytest.mark.parametrize(
    "by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda own: own.name
)
@pytest.mark.parametrize(
    ("call", "grace", "times"),
    [(THREADS, 1.0, 1), (HERE, 1.0, 1), (THREADS, 10 * LONG, 2), (HERE, 10 * LONG, 2)],
)
def test_compiled_code_that_never_ends_is_left(
    tmp_path: Path, call: str, grace: float, times: int, by: int
) -> None:
    script, out = tmp_path / "stuck.py", tmp_path / "made" / "out"
    script.write_text(STUCK.format(rounds=10**13, call=call, grace=grace))
    command = begin(str(script), "stuck")
    assert command.stdout is not None
    scratch = Path(command.stdout.readline().strip())
    assert scratch.is_dir()
    assert "ready" in command.stdout.readline()
    assert out.parent.is_dir()
    said, _ = ended(command, times, by)
    assert said == f"{COMPILING}winnow stuck: stopped; nothing is left half-written\n"
    assert not scratch.exists()
    assert not out.parent.exists()


def test_a_command_that_nohup_has_started_does_not_end_with_its_terminal(tmp_path: Path) -> None:
    script = tmp_path / "stuck.py"
    own = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    call = f"{THREADS}; import os; os.kill(os.getpid(), signal.SIGHUP)"
    script.write_text(own + STUCK.format(rounds=10, call=call, grace=1.0))
    command = begin(str(script), "stuck")
    _, said = command.communicate(timeout=LONG)
    assert (command.returncode, said) == (0, COMPILING)


@pytest.mark.parametrize("name", ["engine.options.meanings", "engine.commands.policies"])
def test_a_command_that_is_being_loaded_ends_at_once(tmp_path: Path, name: str) -> None:
    script = tmp_path / "slowly.py"
    script.write_text(SLOWLY_LOADED.format(name=name))
    command = begin(str(script), "policies")
    assert command.stdout is not None
    assert "ready" in command.stdout.readline()
    said, took = ended(command)
    assert re.fullmatch("winnow( policies)?: stopped; nothing is left half-written\n", said)
    assert command.returncode == 130
    assert took < LONG / 3


def test_a_process_that_compiles_ends_with_the_command() -> None:
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", BESIDE_IT], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 130, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_what_ends_by_itself_is_not_stopped(tmp_path: Path) -> None:
    script = tmp_path / "soon.py"
    script.write_text(STUCK.format(rounds=10, call=THREADS, grace=0.0))
    command = begin(str(script), "stuck")
    _, said = command.communicate(timeout=LONG)
    assert (command.returncode, said) == (0, COMPILING)


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_after_the_end_of_a_command_changes_nothing(tmp_path: Path, by: str) -> None:
    script = tmp_path / "late.py"
    at_exit = f"""
import atexit, os, signal

@atexit.register
def late():
    os.kill(os.getpid(), signal.{by})
"""
    script.write_text(at_exit + STUCK.format(rounds=10, call=THREADS, grace=1.0))
    command = begin(str(script), "stuck")
    _, said = command.communicate(timeout=LONG)
    assert (command.returncode, said) == (0, COMPILING)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams on which commands work for a while."""
    folder = tmp_path_factory.mktemp("streams")
    spec = ZipfSpec(rows=1_000_000, domain=3000, seed=3)
    for name, source in zip(("left", "right"), zipf_sources(spec), strict=True):
        table = pa.Table.from_batches(source.batches(1 << 20), source.schema)
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


JOIN = ["--left", "left.parquet", "--right", "right.parquet", "--on", "key", "--time", "ts"]
TIMED = [*JOIN, "--window", "4000"]
STREAMS = ["--stream", "a=left.parquet", "--stream", "b=right.parquet", "--time", "ts"]
COMMANDS = {
    "replay": ["replay", *TIMED, "--memory", "30%", "--policy", "yield", "--out", "out"],
    "spark": ["replay", *TIMED, "--memory", "30%", "--policy", "yield", "--out", "out",
              "--engine", "spark"],
    "sweep": ["sweep", *TIMED, "--memory", "5%:50%:5%", "--policy", "yield,dgl", "--out", "out"],
    "bound": ["bound", *TIMED, "--memory", "10%", "--method", "dual", "--out", "out",
              "--seconds", "600"],
    "profile": ["profile", *TIMED, "--out", "out.json"],
    "sample": ["sample", *TIMED, "--memory", "10%", "--out", "out"],
    "multijoin": ["multijoin", *STREAMS, "--predicate", "band:key:1", "--window", "4000",
                  "--method", "naive-nlj", "--out", "out"],
    "harvest": ["multijoin", *STREAMS, "--predicate", "band:key:1", "--window", "4000",
                "--throttle", "0.9", "--basic-window", "400", "--adapt-every", "10000"],
}  # fmt: skip


@guards(
    "tests/commands/test_interrupts.py", "engine/commands/interrupts.py", "engine/runtime/work.py"
)
@pytest.mark.parametrize("seconds", [4.0, 15.0])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_long_command_ends(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seconds: float
) -> None:
    for file in large.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    cache = [] if "multijoin" in COMMANDS[name] else ["--cache", "cache"]
    command = begin("-m", "winnow", *COMMANDS[name], *cache)
    time.sleep(seconds)
    said, took = ended(command)
    assert "Traceback" not in said, said
    assert took < LONG / 3
    if command.returncode != 130:  # a fast machine
        return
    assert said.splitlines()[-1].endswith(": stopped; nothing is left half-written")
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"left.parquet", "right.parquet", "cache", "tmp"}
    assert not list((tmp_path / "tmp").glob("winnow-*"))
