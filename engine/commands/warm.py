"""``winnow warm``."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.commands.asked import Asked
from engine.options.command import Command, Group
from engine.options.kinds import FLAG, PLACE, Names
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.runtime.cache_folders import ANY_PROCESSOR, KERNELS, kernel_cache
from engine.runtime.compilation.beside import BESIDE
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.errors import OutputError, SpecError, WinnowError, chosen
from engine.runtime.storage.disk import full_disk_reported, scratch_folder

_ON = "--time t --engine local"
_CACHE = "--cache {folder}/lanes"
_LEFT_RIGHT = "--left {folder}/left.parquet --right {folder}/right.parquet"
_PAIR = f"{_LEFT_RIGHT} --on k {_ON} {_CACHE} --importance v"
_JOIN = f"{_PAIR} --window 20 --memory 16"
_FACTS = "--fact {folder}/fact.parquet --fact-left a --fact-right b"
_STREAMS = (
    "--stream left={folder}/left.parquet --stream right={folder}/right.parquet "
    f"--stream third={{folder}}/third.parquet {_ON}"
)
_STAR = (
    "--stream left={folder}/left.parquet:k --stream right={folder}/right.parquet:k "
    "--fact {folder}/fact.parquet --fact-on left=a --fact-on right=b"
)
_AGGREGATES = "--aggregate count --aggregate sum(importance)"
_SHED = "--throttle 0.5 --basic-window 3 --adapt-every 20"
_TIMED = "--capacity 100 --basic-window 3 --adapt-every 20"
POLICIES = ("prob", "dgl", "dimpprob", "age", "yield")
"""One of each kind that has kernels of its own."""
RUNS: dict[str, tuple[str, ...]] = {
    "replay": (
        *(f"{_JOIN} --policy {name} --out {{folder}}/{name}" for name in POLICIES),
        f"{_LEFT_RIGHT} --on name --time t {_CACHE} --engine local --window 20",
        f"{_PAIR} --window 20 --memory 16 --policy prob {_FACTS}",
        f"{_STAR} {_ON} --window 20 --memory 16 --policy prob",
    ),
    "sweep": (f"{_PAIR} --windows 20 --memory 25%,50% --policies {','.join(POLICIES)}",),
    "sample": (f"{_JOIN} {_AGGREGATES}",),
    "estimate": (
        f"{_LEFT_RIGHT} --on k {_ON} --importance v --window 3 {_AGGREGATES}",
        f"--left {{folder}}/cut.parquet --right {{folder}}/cut.parquet --on k {_ON} --window 3",
    ),
    "bound": (_JOIN,),
    "allocate": ("{folder}/joins.toml --engine local --cache {folder}/lanes",),
    "multijoin": (
        f"{_STREAMS} --predicate equi:k --window 12",
        f"{_STREAMS} --predicate band:v:1 --window 12",
        f"{_STREAMS} --predicate band:v:1 --window 12 {_SHED}",
        f"{_STREAMS} --predicate band:v:1 --window 12 {_TIMED}",
    ),
    "lookup": (
        "--stream {folder}/left.parquet --on k --time t --fact {folder}/fact.parquet --fact-on a",
    ),
    "profile": (f"{_PAIR} --window 20 --out {{folder}}/profile.json",),
    "explain": ("--rates 10,1,1,3 --windows 100,100,100,100 --distinct 500,50,40,5",),
}
"""Small runs by command, which compile what its ordinary runs use."""
_JOINS = """memory = "30%"
""" + "".join(
    f"""
[[join]]
name = "{other}"
left = "{{folder}}/left.parquet"
right = "{{folder}}/{other}.parquet"
on = "k"
time = "t"
window = 20
policy = "prob"
"""
    for other in ("right", "third")
)


class Which(TypedDict, total=False):
    """What is compiled."""

    only: Annotated[
        list[str] | None,
        Option(
            f"commands whose kernels are compiled: of {', '.join(RUNS)} (default: all)", Names()
        ),
    ]
    out: Annotated[
        Path,
        Option(
            "new folder of kernels for any processor of this architecture, which WINNOW_KERNELS "
            "names where winnow runs",
            PLACE,
        ),
    ]
    check: Annotated[
        bool,
        Option("fail if there was a kernel to compile after all", FLAG, default=False),
    ]


COMMAND = Command(
    "warm",
    MEANINGS["warm"],
    (Group("", (Which,)),),
    example="winnow warm --only replay,sweep",
)


def run(asked: Asked) -> int:
    """Carry out small runs, which compile what is not there yet.

    Raises
    ------
    WinnowError
        If kernels cannot be kept, or ``--check`` finds that one was missing.
    """
    given = asked.given
    asked_for = dict.fromkeys(given["only"] or RUNS)
    names = [chosen("--only", name, list(RUNS)) for name in asked_for]
    if given["out"] is not None:
        if given["check"]:
            raise SpecError("--check is of what is there: leave out --out, which makes a folder")
        ship_kernels(given["out"], names)
        print(f"kernels for any processor: {given['out']}")  # noqa: T201 - what was asked for
        return 0
    folder = kernel_cache()
    if folder is None:
        raise WinnowError("there is no folder for kernels that can be written: set WINNOW_CACHE")
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        write_streams(Path(place))
        lines = [(name, line.format(folder=place)) for name in names for line in RUNS[name]]
        compiled = list(chain.from_iterable(_compiled(lines)))
    spent = time.perf_counter() - begun
    print(f"kernels compiled: {len(compiled)}; the others were there")  # noqa: T201
    print(f"seconds: {spent:.1f}; they are kept in {folder}")  # noqa: T201
    if given["check"] and compiled:
        raise WinnowError(
            f"{len(compiled)} kernels were compiled that should have been there: "
            f"{', '.join(compiled)}; run winnow warm with this version of winnow, of Python and of "
            "numba"
        )
    return 0


def ship_kernels(folder: Path, names: Sequence[str]) -> None:
    """Compile kernels for any processor of this architecture into a new folder.

    By a process of its own: numba knows one processor for each.

    Parameters
    ----------
    folder : Path
        Where ``WINNOW_KERNELS`` then finds them.
    names : sequence of str
        Commands that need them, of `RUNS`.

    Raises
    ------
    OutputError
        If `folder` is there already, or cannot be made.
    WinnowError
        If a command fails, as it tells on standard error.
    """
    if os.path.lexists(folder):
        raise OutputError(f"{folder} exists: remove it or give another folder")
    try:
        folder.mkdir(parents=True)
        folder.rmdir()
    except OSError as error:
        raise OutputError(
            f"folder {folder} cannot be made ({error.strerror}): give another"
        ) from None
    own = {name: value for name, value in os.environ.items() if name != "WINNOW_KERNELS"}
    with scratch_folder() as cache:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "winnow", "warm", "--only", ",".join(names)],
            env=own | ANY_PROCESSOR | {"WINNOW_CACHE": str(cache)}, stdout=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise WinnowError("kernels could not be compiled, as told above")
        try:
            with full_disk_reported("folder", folder, "give another folder"):
                shutil.copytree(cache / KERNELS, folder)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def write_streams(folder: Path) -> None:
    """Write three small streams, a fact relation and the joins of an allocation."""
    rng = np.random.default_rng(5)
    for name, keys in (("left", 8), ("right", 8), ("third", 6)):
        key = rng.integers(0, keys, 240)
        columns = {
            "t": np.cumsum(rng.integers(0, 3, 240)),
            "k": key,
            "v": rng.integers(1, 9, 240) / 1.0,
            "name": pa.array([f"key {own}" for own in key]),
        }
        table = pa.table(columns)
        pq.write_table(table, folder / f"{name}.parquet")
    pq.write_table(pa.concat_tables([table] * 3), folder / "cut.parquet", row_group_size=1)
    pq.write_table(pa.table({"a": [0, 1, 2, 3, 1], "b": [1, 2, 2, 5, 0]}), folder / "fact.parquet")
    (folder / "joins.toml").write_text(_JOINS.format(folder=folder))


def _compiled(lines: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Carry out runs, as many at once as there are cores; yield what kernels each compiled."""
    with ThreadPoolExecutor(BESIDE.most) as threads:
        done: Iterator[list[str]] = map(_run, lines)
        if BESIDE.most > 1 and len(lines) > 1:
            done = threads.map(partial(BESIDE.call, _run), lines)
        try:
            for number, (name, _) in enumerate(lines, 1):
                _tell(f"{name}, {number} of {len(lines)} runs")
                yield next(done)
        finally:
            BESIDE.stop()


def _run(line: tuple[str, str]) -> list[str]:
    """Carry out a run without what it prints; return the kernels that it compiled."""
    from engine.commands import main  # noqa: PLC0415 - it imports this file

    said, COMPILED.tell = COMPILED.tell, None
    before, COMPILED.always = COMPILED.always, True
    first, errors = len(COMPILED.names), io.StringIO()
    try:
        with (
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(errors),
        ):
            status = main([line[0], *line[1].split()])
    finally:
        COMPILED.tell, COMPILED.always = said, before
    if status:
        raise WinnowError(f"{line[0]} failed as its kernels were compiled: {errors.getvalue()}")
    return COMPILED.names[first:]


def _tell(line: str) -> None:
    print(f"winnow warm: {line}", file=sys.stderr, flush=True)  # noqa: T201 - progress
