"""Where a command's tasks run: here, or on an engine that another package registers.

An engine is a function ``(work) -> result`` that calls ``work(executor)`` with its own executor,
registered under the entry-point group ``winnow.engines``. So the engine package runs on Spark
without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, TypeAlias

from engine.errors import SpecError, did_you_mean
from engine.executors import Executor, ThreadExecutor

EngineRun: TypeAlias = Callable[[Callable[[Executor], Any]], Any]
GROUP = "winnow.engines"


def _local(work: Callable[[Executor], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
    return work(ThreadExecutor())


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
