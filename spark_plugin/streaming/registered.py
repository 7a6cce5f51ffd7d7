"""Registers the source ``winnow`` with a session, wherever winnow's code lies."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

import spark_plugin
from engine.runtime.errors import SpecError
from spark_plugin.streaming.source import Source

_PATH = "PYTHONPATH"


def check_python(session: SparkSession) -> None:
    """Check that Spark can plan a stream here, on the driver's machine.

    Raises
    ------
    SpecError
        If the workers' Python lies in an archive that Spark unpacks only for executors.
    """
    python = str(session.sparkContext.pythonExec)
    if os.path.dirname(python) and not Path(python).exists():  # noqa: PTH120 - "./python" has one
        raise SpecError(
            f"spark.pyspark.python is {python}, and {Path(python).absolute()} is not there: a "
            "stream is planned beside the driver by the same Python as on the workers; unpack the "
            "archive of packages there too, or give a path that is on all machines"
        )


def register(session: SparkSession) -> None:
    """Register ``format("winnow")`` where Spark does not find it by itself.

    Parameters
    ----------
    session : SparkSession

    Notes
    -----
    Spark plans a stream in a Python process on the driver's machine, which looks for the files of
    ``--py-files`` in a folder ``streaming_job`` where Spark 4.2.0 has put none. So that process is
    told where the driver found winnow.
    """
    environment = session.sparkContext.environment
    before = environment.get(_PATH)
    own = str(Path(spark_plugin.__file__).absolute().parents[1])
    environment[_PATH] = own if before is None else own + os.pathsep + before
    try:
        session.dataSource.register(Source)
    finally:
        if before is None:
            del environment[_PATH]
        else:
            environment[_PATH] = before
