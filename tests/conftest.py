"""Fixtures of all tests: a Spark session and a cluster, started by the first that asks for one."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import quick_java
from cases_tried import tried
from thorough import THOROUGH

_SUBMIT = (
    "--master local[2] --driver-memory 1g --conf spark.sql.shuffle.partitions=3 "
    "--conf spark.ui.enabled=false --conf spark.sql.codegen.wholeStage=false "
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
)
"""Spark compiles nothing for tables of some hundred rows; on clusters and in documents it does."""
for _name, _options in quick_java.VARIABLES.items():
    os.environ.setdefault(_name, _options)
os.environ.setdefault("WINNOW_COMPILE", "always")  # `tests/.../test_interpreted.py` interprets


SLOW = [
    f"test_{name}.py"
    for name in (
        "gpu_tasks_cluster", "cluster_faults", "cluster", "replay_ptx", "docs", "gpu_drivers",
        "docker_roles", "rapids_plans",
    )
]  # fmt: skip
"""Files of tests that take longest and do not share the session, the longest first."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take ``--cases N`` and ``--seconds S`` (`cases_tried`)."""
    told = "of each parametrised test try N cases, or all where what it uses has changed"
    parser.addoption("--cases", type=int, metavar="N", help=told)
    told = "beside N cases of each, only what takes S seconds of one process, a part of it in turn"
    parser.addoption("--seconds", type=float, metavar="S", help=told)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are not tried, and put the others in order."""
    most = config.getoption("--cases")
    if most is not None:
        items[:], others = tried(items, most, config.getoption("--seconds"))
        config.hook.pytest_deselected(items=others)
    _share_out(items)


def _share_out(items: list[pytest.Item]) -> None:
    """Let processes that test side by side begin with what takes longest.

    Of pytest-xdist's, each is given an equal part of the tests, in order; one that is through takes
    tests from the end of another's. The first begins with the tests that share a Spark session, so
    that the others seldom need one of their own; the second with the slow files.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers < 2:
        return
    shared, slow, others = [], [], []
    for item in items:
        if item.path.name in SLOW:
            slow.append(item)
        else:
            (shared if "spark" in getattr(item, "fixturenames", ()) else others).append(item)
    slow.sort(key=lambda item: SLOW.index(item.path.name))
    piles = [shared, slow, *([] for _ in range(workers - 2))]
    end = 0
    for number, pile in enumerate(piles, 1):
        begin, end = end, len(items) * number // workers
        missing = max(end - begin - len(pile), 0)
        pile.extend(others[:missing])
        del others[:missing]
    items[:] = [item for pile in piles for item in pile] + others


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what is there for good: modules and tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _kernel_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no kind's own kernel be compiled because a process has replayed much (`thorough`)."""
    if not THOROUGH:
        monkeypatch.setattr("engine.replay.common.TUPLES", sys.maxsize)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a session of two cores as `get_session` makes it where the environment says so.

    With ``WINNOW_SPARK=connect`` it is one of Spark Connect, whose server is a process of its own.
    """
    from spark_plugin.session import get_session  # noqa: PLC0415 - tests without Spark need none

    if os.environ.get("WINNOW_SPARK") == "connect":
        from connect_server import connect_server  # noqa: PLC0415 - the same

        with connect_server(tmp_path_factory.mktemp("connect")) as address:
            os.environ["SPARK_REMOTE"] = address
            session = get_session("winnow tests")
            yield session
            session.stop()
        return
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
