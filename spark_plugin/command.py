"""The engine ``spark`` of the command line: entry point of the group ``winnow.engines``."""

from __future__ import annotations

import sys

from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session


def spark_executor(*, rapids: bool = False) -> SparkExecutor:
    """Return an executor on the active Spark session, or a new one.

    Parameters
    ----------
    rapids : bool
        Whether a new session is to use the RAPIDS Accelerator.

    Raises
    ------
    DeviceError
        If Spark does not start.
    SpecError
        If the RAPIDS Accelerator is wanted and the running session was started without it.
    """
    return SparkExecutor(get_session(light=not rapids, rapids=rapids), _notify)


def _notify(message: str) -> None:
    print(f"winnow: {message}", file=sys.stderr)  # noqa: T201 - beside the command's answer
