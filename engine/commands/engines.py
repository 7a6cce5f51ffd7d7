"""Where a command's tasks run: here, or on an engine that another package registers.

An engine is a function ``(work) -> result`` that calls ``work(executor)`` with its own executor,
registered under the entry-point group ``winnow.engines``. So the engine package runs on Spark
without knowing it. Commands of other packages are registered under ``winnow.commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from typing import Any, Protocol, TypeAlias

from engine.options.command import Command
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.executors import Executor, ThreadExecutor

EngineRun: TypeAlias = Callable[..., Any]
"""``(work, *, rapids=False)``; `rapids` is given to it only if it was asked for."""
GROUP = "winnow.engines"
COMMANDS = "winnow.commands"


class Plugin(Protocol):
    """A module that is a command of ``winnow``: light to import, for every call imports it."""

    COMMAND: Command
    """Its name and options."""

    def run(self, asked: Any, /) -> int:  # noqa: ANN401 - engine.commands.running.Asked
        """Do what an `engine.commands.running.Asked` asks, and return the exit status."""
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
        Of this process, beside the installed ones.
    name : str
    rapids : bool
        Whether it is to use the RAPIDS Accelerator.

    Raises
    ------
    SpecError
        If there is no such engine, or it cannot do what is asked of it.
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
        If there is none, with those there are.
    """
    engines: dict[str, Callable[[], EngineRun]] = {"local": lambda: _local}
    for point in metadata.entry_points(group=GROUP):
        engines[point.name] = point.load
    for other, run in given.items():
        engines[other] = lambda run=run: run  # type: ignore[misc]
    if name not in engines:
        raise SpecError(
            f"--engine is {name!r}; choose one of {', '.join(sorted(engines))}."
            + did_you_mean(name, engines)
        )
    return engines[name]()
