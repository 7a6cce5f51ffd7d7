"""Tasks on Spark: few, large ones that read their files themselves."""

from __future__ import annotations

import pickle
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from typing import TypeVar

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from engine.runtime.errors import WinnowError
from engine.runtime.host import keep_freed_memory
from engine.runtime.work import stage_here
from spark_plugin import connect
from spark_plugin.accumulators import leave
from spark_plugin.archives.first_pass import Relational
from spark_plugin.gpu import GpuTerms, bind_task, gpu_terms
from spark_plugin.hearing import Place, hearing, telling
from spark_plugin.naming import described, jobs_named
from spark_plugin.outcome import Outcome, attempt, settle
from spark_plugin.rapids.session import uses_rapids
from spark_plugin.session import parallelism
from spark_plugin.versions import inheriting

T = TypeVar("T")
R = TypeVar("R")

_CANCELLED = re.compile(r"\bJob \d+ cancelled\b[^\n]*?(?= SQLSTATE|\n|$)|OPERATION_CANCELED")
_LACKING = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
_NO_PYTHON = re.compile(r'Cannot run program "([^"\n]+)"')
_NOT_STARTED = re.compile(r"^Error from python worker:\n(?:  .*\n)*?  (.*)\n(?!  )", re.MULTILINE)
_OTHER_PYTHON = re.compile(r"worker has different version: (\S+) than that in driver: ([\d.]+)")
_JOBS = 4
_SMALL = 50_000_000
"""Tuples up to which work is one job: every other takes some 25 ms, and work waits for the last."""
_TASKS = 4
"""Tasks of a job that a slot runs, one after the other as it falls free, at 5 to 10 ms each."""


class SparkExecutor:
    """Runs tasks on a Spark session (`engine.runtime.executors.Executor`).

    Items are cut, in order, into a few jobs that run at the same time, so that results arrive while
    others are computed; if they process few tuples, one job has them all. A job distributes its
    items over a few Spark tasks per slot, so that large items at the front are spread and no slot
    waits long for another. Spark repeats a task that failed or whose executor was lost, up to
    ``spark.task.maxFailures`` times, and runs slow tasks twice under ``spark.speculation``.
    Functions are therefore pure, and each attempt writes files under its own names. The results of
    one attempt per task are used.

    With the RAPIDS Accelerator, queries make the first pass of preparing lanes.

    Parameters
    ----------
    session : SparkSession
    tell : callable, optional
        Called with a sentence about what is not done as requested; by default a warning.

    Notes
    -----
    The workers must be able to import ``engine``: installed, or shipped by ``--py-files``.
    """

    threads = 1

    def __init__(self, session: SparkSession, tell: Callable[[str], None] | None = None) -> None:
        self._session, self._tell = session, tell or warnings.warn
        self._width = parallelism(session)
        self._terms = gpu_terms(session)

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return self._width

    def first_pass(self) -> Relational | None:
        """Return the first pass by queries where the RAPIDS Accelerator would run them."""
        if connect.of_connect(self._session) or not uses_rapids(self._session):
            return None
        return Relational(self._session, self._tell)

    def show(self, line: str, figures: Mapping[str, float]) -> None:
        """Show a line in Spark's list of jobs, and figures on the page of its stage."""
        leave(self._session, line, figures)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order.

        Raises
        ------
        WinnowError
            The first error that a task raised, in the order of the items; or if the job was
            cancelled.
        RuntimeError
            If every attempt at a task failed otherwise, with the message of the last.
        """
        return self._heard(function, list(items), stage_here())

    def _heard(self, function: Callable[[T], R], items: list[T], stage: str) -> Iterator[R]:
        with hearing(self._session) as place:
            yield from self._mapped(function, items, stage, place)

    def _mapped(
        self, function: Callable[[T], R], items: list[T], stage: str, place: Place | None
    ) -> Iterator[R]:
        tag = f"winnow-{uuid.uuid4().hex}"
        first, jobs = 0, []
        for part in blocks(items, self._width):
            name = described(stage, part)
            jobs.append(self._start(function, part, name, tag, place, first))
            first += len(part)
        done = 0
        try:
            for job in jobs:
                for outcome in job.result():
                    if outcome.error is not None:
                        raise outcome.error
                    yield outcome.result
                done += 1
        finally:
            if done < len(jobs):
                self._cancel(tag)

    def _cancel(self, tag: str) -> None:
        if connect.of_connect(self._session):
            self._session.interruptTag(tag)
        else:
            self._session.sparkContext.cancelJobsWithTag(tag)

    def _start(
        self,
        function: Callable[[T], R],
        items: list[T],
        name: str,
        tag: str,
        place: Place | None,
        first: int,
    ) -> Future[list[Outcome]]:
        """Run a job on a thread of its own."""
        found: Future[list[Outcome]] = Future()
        session = self._session
        run = connect.run if connect.of_connect(session) else _run
        tasks = min(len(items), _TASKS * self._width)
        work = _worker(cloudpickle.dumps((function, items)), tasks, self._terms, place, first)

        def collect() -> None:
            try:
                with jobs_named(session, name, tag):
                    rows = run(session, work, tasks)
                found.set_result(_in_order(rows, len(items)))
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                failure = _failure(str(error).strip())
                failure.__cause__ = error
                found.set_exception(failure)

        inheriting(collect, session).start()
        return found


def _run(
    session: SparkSession,
    work: Callable[[Iterable[int]], Iterator[tuple[int, bytes]]],
    tasks: int,
) -> list[tuple[int, bytes]]:
    """Run a job as an RDD, for which Spark has no query to plan; return the rows of all tasks."""
    numbers = session.sparkContext.parallelize(range(tasks), tasks)
    rows: list[tuple[int, bytes]] = numbers.mapPartitions(work).collect()
    return rows


def _failure(said: str) -> Exception:
    """Return the error of a job of which Spark says that it has failed."""
    found = _CANCELLED.search(said)
    if found is not None:
        return WinnowError(
            f"the job was cancelled on Spark ({found[0]}): run it again; nothing is left "
            "half-written"
        )
    lacking = _LACKING.search(said)
    if lacking is not None:
        return WinnowError(
            f"Spark's workers find no module {lacking[1]!r}: have them run Python with winnow, by "
            f"PYSPARK_PYTHON={sys.executable} before Spark starts, or ship it (winnow package)"
        )
    found = _NO_PYTHON.search(said)
    if found is not None:
        return WinnowError(
            f"Spark's workers cannot run Python as {found[1]!r}: set PYSPARK_PYTHON or "
            "spark.pyspark.python to a Python that every machine has, or ship the packages "
            "(winnow package)"
        )
    found = _NOT_STARTED.search(said)
    if found is not None:
        return WinnowError(f"Python of Spark's workers does not start: {found[1]}")
    found = _OTHER_PYTHON.search(said)
    if found is not None:
        return WinnowError(
            f"Spark's workers run Python {found[1]}, and this is Python {found[2]}: set "
            f"PYSPARK_PYTHON or spark.pyspark.python to a Python {found[2]} with winnow"
        )
    return RuntimeError(f"a task failed on Spark: {said}")


def blocks(items: Sequence[T], width: int) -> list[list[T]]:
    """Cut items into one run per job: first `width` items, one per task, then the others evenly.

    If all items state their number of tuples and the total is small, one run has them all. Callers
    that know the sizes put large items first; the tasks of the others then use the slots as they
    become free.

    Examples
    --------
    >>> blocks("abc", 2), [len(run) for run in blocks(range(100), 4)]
    ([['a', 'b'], ['c']], [4, 32, 32, 32])
    """
    if items and sum(getattr(item, "rows", _SMALL + 1) for item in items) <= _SMALL:
        return [list(items)]
    rest = max(0, len(items) - width)
    count = min(rest, _JOBS - 1)
    edges = [0, min(width, len(items)), *(width + rest * i // count for i in range(1, count + 1))]
    return [list(items[a:b]) for a, b in pairwise(edges) if b > a]


def _in_order(rows: Sequence[tuple[int, bytes]], items: int) -> list[Outcome]:
    """Return the outcomes by item, up to the first failure.

    A task stops at a failure, so every item before the first one has its outcome.
    """
    outcomes: list[Outcome | None] = [None] * items
    for item, written in rows:
        outcomes[item] = pickle.loads(written)  # noqa: S301 - written by our own worker
    ordered: list[Outcome] = []
    for item, outcome in enumerate(outcomes):
        if outcome is None:
            raise RuntimeError(f"Spark returned no result for item {item} of {items}")
        ordered.append(outcome)
        if outcome.error is not None:
            break
    return ordered


def _worker(
    work: bytes, tasks: int, terms: GpuTerms, place: Place | None, first: int
) -> Callable[[Iterable[int]], Iterator[tuple[int, bytes]]]:
    """Return what a Spark task runs: the items of its number, one after the other.

    It tells how far it got at `place`, as the task of number `first` and its own.
    """

    def run(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        bind_task(terms)
        keep_freed_memory()
        function, items = pickle.loads(work)  # noqa: S301 - written by the driver
        for task in numbers:
            for item in range(task, len(items), tasks):
                with telling(place, first + item):
                    outcome = attempt(function, items[item])
                yield item, cloudpickle.dumps(outcome)
                if outcome.error is not None:
                    return
        settle(function)

    return run
