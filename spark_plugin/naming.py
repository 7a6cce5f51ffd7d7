"""What Spark's pages show of winnow's jobs: a group, and a description with the stage and lanes.

They are properties of the thread that starts a job. Without pinned threads (``PYSPARK_PIN_THREAD``)
a thread has no properties of its own, and jobs get no names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.clientserver import ClientServer  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

from engine.lanes.reader import LaneFiles
from spark_plugin.connect import of_connect

GROUP = TAG = "winnow"
"""The group of jobs of a thread that has none, and the tag of all jobs."""
_GROUP, _DESCRIPTION, _TAGS = "spark.jobGroup.id", "spark.job.description", "spark.job.tags"
_NAMED = 8
"""Lanes that a description names."""


def described(stage: str, items: Sequence[object]) -> str:
    """Return the description of a job: the stage, and the lanes in the order of its tasks.

    Examples
    --------
    >>> described("split", [])
    'winnow split'
    """
    lanes = list(dict.fromkeys(lane for item in items for lane in lanes_of(item)))
    rows = sum(own for own in (getattr(item, "rows", 0) for item in items) if isinstance(own, int))
    said = []
    if lanes:
        more = f" and {len(lanes) - _NAMED:,} more" if len(lanes) > _NAMED else ""
        named = ", ".join(map(str, lanes[:_NAMED]))
        said.append(f"lane{'s' if len(lanes) > 1 else ''} {named}{more}")
    if rows:
        said.append(f"{rows:,} tuples")
    return f"winnow {stage or 'task'}{': ' if said else ''}{', '.join(said)}"


def lanes_of(item: object) -> Iterator[int]:
    """Yield the lanes that a task works on."""
    if isinstance(item, LaneFiles):
        yield item.lane
    elif isinstance(item, tuple | list):
        for one in item:
            yield from lanes_of(one)
    else:
        for name in ("files", "task", "tasks"):
            yield from lanes_of(getattr(item, name, ()))
        lanes = getattr(item, "lanes", ())
        for lane in lanes if isinstance(lanes, tuple) else ():
            yield from [lane] if isinstance(lane, int) else lanes_of(lane)


@contextmanager
def jobs_named(session: SparkSession, description: str, *tags: str) -> Iterator[None]:
    """Name the jobs that this thread starts in the block; then it has the names of before.

    The caller's description stands before ours, and a group of its own is kept, so that cancelling
    it cancels these jobs.

    Parameters
    ----------
    session : SparkSession
    description : str
    *tags : str
        By which jobs can be cancelled, besides `TAG`.
    """
    if of_connect(session):
        fresh = {TAG, *tags} - session.getTags()
        for tag in fresh:
            session.addTag(tag)
        try:
            yield
        finally:
            for tag in fresh:
                session.removeTag(tag)
        return
    context = session.sparkContext
    pinned = isinstance(SparkContext._gateway, ClientServer)  # noqa: SLF001 - as InheritableThread asks
    names = (_GROUP, _DESCRIPTION, _TAGS) if pinned else (_TAGS,)
    before = {name: context.getLocalProperty(name) for name in names}
    if pinned:
        own = before[_DESCRIPTION]
        context.setLocalProperty(_GROUP, before[_GROUP] or GROUP)
        context.setLocalProperty(_DESCRIPTION, f"{own}: {description}" if own else description)
    for tag in (TAG, *tags):
        context.addJobTag(tag)
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)
