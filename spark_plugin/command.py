"""The engine ``spark`` of the command line: entry point of the group ``winnow.engines``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from engine.executors import Executor
from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session

R = TypeVar("R")


def run(work: Callable[[Executor], R]) -> R:
    """Return ``work(executor)`` with an executor on the active Spark session, or a new one.

    Raises
    ------
    DeviceError
        If Spark does not start.
    """
    return work(SparkExecutor(get_session(light=True)))
