"""The source ``winnow`` made known to a session, wherever winnow's code lies."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

import spark_plugin
from spark_plugin.streaming.source import Source

_PATH = "PYTHONPATH"


def register(session: SparkSession) -> None:
    """Make ``format("winnow")`` known where Spark does not find it by itself.

    Parameters
    ----------
    session : SparkSession

    Notes
    -----
    Spark plans a stream in a Python process beside the driver, which looks for the files of
    ``--py-files`` in a folder of its own, ``streaming_job``, where Spark has put none (4.2.0). So
    that process is told where the driver has winnow from.
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
