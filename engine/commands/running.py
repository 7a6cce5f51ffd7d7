"""How a command does its work: on the engine asked for, with progress, and its report saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from engine.commands.engines import EngineRun, engine_of
from engine.commands.parser import given_of
from engine.options.command import Command, Given
from engine.report.envelope import Report, check_place
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress

R = TypeVar("R")


class Asked(NamedTuple):
    """A command line.

    Attributes
    ----------
    command : Command
    values : dict
        By keyword, unread.
    engines : mapping
        Engines by name beside the installed ones.
    """

    command: Command
    values: dict[str, Any]
    engines: Mapping[str, EngineRun]

    @property
    def given(self) -> Given:
        """The options, those of the job file too, read and checked."""
        return given_of(self.command, self.values)


def carried_out(
    asked: Asked,
    given: Given,
    work: Callable[[Executor, Progress], R],
    report_of: Callable[[R], Report],
) -> R:
    """Do a piece of work on the engine asked for, and save its report where that was asked.

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
        What the work finds wrong; before it, that there is no such engine or that the report could
        not be written.
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
    """Yield ``progress(stage, done, total)``, which draws on standard error if it is a terminal."""
    console = Console(stderr=True)
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    tasks: dict[str, Any] = {}
    with bars:

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show
