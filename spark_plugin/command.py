"""The engine ``spark`` of the command line: entry point of the group ``winnow.engines``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_plugin.configured import why_spark

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
        from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - with pyspark, a second
        from spark_plugin.session import get_session  # noqa: PLC0415 - the same

        return SparkExecutor(get_session(light=not rapids, rapids=rapids), _notify)

    def wanted(self) -> str | None:
        """Return why ``--engine auto`` is this engine here, None if it is not."""
        return why_spark()


def _notify(message: str) -> None:
    print(f"winnow: {message}", file=sys.stderr)  # noqa: T201 - beside the command's answer


spark_executor = SparkEngine()
