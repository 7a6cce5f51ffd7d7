"""How a command runs: on the requested engine, with a progress bar, and its report saved.

An engine is a function ``(work) -> result`` that calls ``work(executor)`` with its own executor,
registered under the entry-point group ``winnow.engines``. So the engine package runs on Spark
without knowing it. Commands of other packages are registered under ``winnow.commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from engine.commands.parser import given_of
from engine.options.command import Command, Given
from engine.report.envelope import Report, check_place
from engine.runtime.errors import SpecError, chosen
from engine.runtime.executors import Executor, Progress, ThreadExecutor

EngineRun: TypeAlias = Callable[..., Any]
"""``(work, *, rapids=False)``; `rapids` is given to it only if it was asked for."""
GROUP = "winnow.engines"
COMMANDS = "winnow.commands"


class Plugin(Protocol):
    """A module that is a command of ``winnow``. Every call imports it, so it must be light."""

    COMMAND: Command
    """Its name and options."""

    def run(self, asked: Asked, /) -> int:
        """Carry out a command line and return the exit status."""
        ...


def registered_commands(given: Mapping[str, Plugin]) -> dict[str, Plugin]:
    """Return the commands of other packages by name: those installed, and those given."""
    found = {point.name: point.load() for point in metadata.entry_points(group=COMMANDS)}
    return found | dict(given)


def _local(work: Callable[[Executor], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
    return work(ThreadExecutor())


def engine_of(engines: Mapping[str, EngineRun], name: str, *, rapids: bool) -> EngineRun:
    """Return the engine that a command is to run on.

    Parameters
    ----------
    engines : mapping
        Of this process, in addition to the installed ones.
    name : str
    rapids : bool
        Whether it is to use the RAPIDS Accelerator.

    Raises
    ------
    SpecError
        If there is no such engine, or it does not support what is requested.
    """
    run = engine_named(name, engines)
    if not rapids:
        return run
    if name != "spark":
        raise SpecError(
            f"--rapids is a plugin of Spark, and --engine is {name!r}: leave one of them out"
        )
    return partial(run, rapids=True)


def engine_named(name: str, given: Mapping[str, EngineRun]) -> EngineRun:
    """Return the engine of that name.

    Raises
    ------
    SpecError
        If there is none; the message lists those there are.
    """
    engines: dict[str, Callable[[], EngineRun]] = {"local": lambda: _local}
    for point in metadata.entry_points(group=GROUP):
        engines[point.name] = point.load
    for other, run in given.items():
        engines[other] = lambda run=run: run  # type: ignore[misc]
    return engines[chosen("--engine", name, sorted(engines))]()


R = TypeVar("R")


class Asked(NamedTuple):
    """A command line.

    Attributes
    ----------
    command : Command
    values : dict
        Raw values by keyword.
    engines : mapping
        Engines by name beside the installed ones.
    """

    command: Command
    values: dict[str, Any]
    engines: Mapping[str, EngineRun]

    @property
    def given(self) -> Given:
        """The options, including those of the job file, read and checked."""
        return given_of(self.command, self.values)


def carried_out(
    asked: Asked,
    given: Given,
    work: Callable[[Executor, Progress], R],
    report_of: Callable[[R], Report],
) -> R:
    """Run work on the requested engine, and save its report if one was requested.

    Parameters
    ----------
    asked : Asked
    given : Given
        With ``engine``, ``rapids`` and ``report``.
    work : callable
        ``(executor, progress) -> result``.
    report_of : callable
        Its report.

    Raises
    ------
    WinnowError
        From the work; or before it, if there is no such engine or the report could not be written.
    """
    place = given["report"]
    if place is not None:
        check_place(place)
    engine = engine_of(asked.engines, given["engine"], rapids=given["rapids"])
    with progress_bar() as progress:
        result: R = engine(lambda executor: work(executor, progress))
    if place is not None:
        report_of(result).save(place)
    return result


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield ``progress(stage, done, total)``, which draws on standard error on a terminal."""
    console = Console(stderr=True)
    bars = Bars(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    tasks: dict[str, Any] = {}
    with bars:

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show
