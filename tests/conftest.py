"""Fixtures of all tests: a Spark session and a cluster, started by the first that asks for one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SUBMIT = "--master local[2] --driver-memory 1g --conf spark.sql.shuffle.partitions=3 pyspark-shell"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Return a session of two cores as `get_session` makes it where the environment says so."""
    from spark_plugin.session import get_session  # noqa: PLC0415 - tests without Spark need none

    before = os.environ.get("PYSPARK_SUBMIT_ARGS")
    os.environ["PYSPARK_SUBMIT_ARGS"] = _SUBMIT
    try:
        session = get_session("winnow tests")
        yield session
    finally:
        if before is None:
            del os.environ["PYSPARK_SUBMIT_ARGS"]
        else:
            os.environ["PYSPARK_SUBMIT_ARGS"] = before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Py4J leaves its sockets to the collector
        session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the Spark cluster that the processes of this run share (`cluster.Cluster`)."""
    from cluster import shared  # noqa: PLC0415 - tests without Spark need none

    base = Path(tmp_path_factory.getbasetemp())
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with shared(base / "cluster") as running:
        yield running
