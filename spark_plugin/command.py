"""The engine ``spark`` of the command line: entry point of the group ``winnow.engines``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from engine.runtime.executors import Executor
from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session

R = TypeVar("R")


def run(work: Callable[[Executor], R], *, rapids: bool = False) -> R:
    """Return ``work(executor)`` with an executor on the active Spark session, or a new one.

    Parameters
    ----------
    work : callable
    rapids : bool
        Whether a new session is to use the RAPIDS Accelerator.

    Raises
    ------
    DeviceError
        If Spark does not start.
    SpecError
        If the RAPIDS Accelerator is wanted and the running session was started without it.
    """
    return work(SparkExecutor(get_session(light=not rapids, rapids=rapids), _notify))


def _notify(message: str) -> None:
    print(f"winnow: {message}", file=sys.stderr)  # noqa: T201 - beside the command's answer
