"""How a command runs: on the requested engine, with a progress bar, and its report saved.

An engine is a function that returns the executor of its tasks, registered under the entry-point
group ``winnow.engines``. So the engine package runs on Spark without knowing it. Its method
``wanted``, if it has one, takes a function that returns the bytes of the archives, and returns why
``--engine auto`` is to be this engine here, or None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from engine.archives.finding import stored_bytes
from engine.commands.asked import Asked, Engine
from engine.commands.bars import progress_bars
from engine.commands.telling import Telling, telling
from engine.options.command import Given
from engine.options.where import AUTO_ENGINE
from engine.report.shown import Shown
from engine.runtime.errors import SpecError, chosen
from engine.runtime.executors import Executor, Progress, ThreadExecutor
from engine.runtime.plugins import plugins
from engine.runtime.storage.uris import Place
from engine.runtime.warned import warn

GROUP = "winnow.engines"
LOCAL = "local"


def executor_of(
    engines: Mapping[str, Engine], name: str, archives: Iterable[str] = (), *, rapids: bool = False
) -> Executor:
    """Start the engine that a command is to run on, and return the executor of its tasks.

    Parameters
    ----------
    engines : mapping
        Of this process, in addition to the installed ones.
    name : str
        ``auto`` is the first engine that says it is wanted here, else ``local``; a line on standard
        error tells which.
    archives : iterable of str
        Where what is to be read is, all of it.
    rapids : bool
        Whether it is to use the RAPIDS Accelerator, which is a plugin of Spark.

    Raises
    ------
    SpecError
        If there is no such engine, or it does not support what is requested.
    DeviceError
        If it does not start.
    """
    known: dict[str, Callable[[], Engine]] = {LOCAL: lambda: ThreadExecutor}
    for own, point in plugins(GROUP).items():
        known[own] = point.load
    for other, engine in engines.items():
        known[other] = lambda engine=engine: engine  # type: ignore[misc]
    name = chosen("--engine", name, [AUTO_ENGINE, *sorted(known)])
    if name == AUTO_ENGINE:
        name = "spark" if rapids else _wanted(known, archives)
    start = known[name]()
    if not rapids:
        return start()
    if name != "spark":
        raise SpecError(
            f"--rapids is a plugin of Spark, and --engine is {name!r}: leave one of them out"
        )
    return start(rapids=True)


def _wanted(known: Mapping[str, Callable[[], Engine]], archives: Iterable[str]) -> str:
    """Return the engine that is wanted here, and tell."""
    size = cache(lambda: stored_bytes(archives))
    for name, load in known.items():
        wanted = getattr(load(), "wanted", None)
        why = None if wanted is None else wanted(size)
        if why is not None:
            _tell(f"on {name}, for {why} (--engine local: on threads of this process)")
            return name
    _tell("on threads of this process (--engine spark: on Spark)")
    return LOCAL


def _tell(line: str) -> None:
    print(f"winnow: {line}", file=sys.stderr)  # noqa: T201 - beside the command's answer


class Running(NamedTuple):
    """What a job runs with, and where its report goes."""

    executor: Executor
    progress: Progress
    telling: Telling

    @property
    def on(self) -> tuple[Executor, Progress]:
        """The last arguments of every job."""
        return self.executor, self.progress

    def tell(self, shown: Shown) -> None:
        """Print a report, and write the files of it that were requested."""
        self.telling.tell(shown)


@contextmanager
def running(
    asked: Asked, given: Given, archives: Iterable[str] = (), *, besides: Iterable[Place] = ()
) -> Iterator[Running]:
    """Start the requested engine, and draw the progress of the job in the block.

    Parameters
    ----------
    given : Given
        With ``engine`` and ``rapids``, and ``report`` and ``html`` where the command has them.
    archives : iterable of str
        See `executor_of`.
    besides : iterable of Place
        What else is read that no option of the command names.

    Raises
    ------
    WinnowError
        If there is no such engine, it does not start, or the report could not be written.
    """
    told = telling(asked, given, [*archives, *besides])
    written = "out" not in given.options or given["out"] is not None  # lanes are, which have no out
    if given.get("columns") == "ids" and not written:
        warn("--columns ids is of outputs that are written, and none are: give --out as well")
    executor = executor_of(asked.engines, given["engine"], archives, rapids=given["rapids"])
    with progress_bars() as progress:
        yield Running(executor, progress, told)
