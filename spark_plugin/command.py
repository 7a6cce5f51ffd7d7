"""The engine ``spark`` of the command line: entry point of the group ``winnow.engines``."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from spark_plugin.configured import why_large, why_spark, why_there

if TYPE_CHECKING:
    from spark_plugin.executor import SparkExecutor


class SparkEngine:
    """The engine, which loads Spark when it is started."""

    def __call__(self, *, rapids: bool = False) -> SparkExecutor:
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
        if why_there() is None:
            _notify("starting Spark")
        from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - with pyspark, a second
        from spark_plugin.session import get_session  # noqa: PLC0415 - the same

        logging.getLogger().addFilter(_not_of_py4j)
        session = get_session(light=not rapids, rapids=rapids)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's asks the JVM first
        return SparkExecutor(session, _notify)

    def wanted(self, archives: Callable[[], int]) -> str | None:
        """Return why ``--engine auto`` is this engine here, None if it is not.

        Parameters
        ----------
        archives : callable
            Returns what is to be read, in bytes.
        """
        return why_spark() or why_large(archives)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Keep Py4J from logging what Ctrl-C breaks off; it raises the errors that it logs."""
    return "py4j" not in record.pathname


def _notify(message: str) -> None:
    print(f"winnow: {message}", file=sys.stderr)  # noqa: T201 - beside the command's answer


spark_executor = SparkEngine()
