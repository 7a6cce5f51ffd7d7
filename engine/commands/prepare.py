"""``winnow prepare``."""

from __future__ import annotations

from engine.archives.source import open_archive
from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.frame import facts_of
from engine.lanes.prepare import prepare_cached
from engine.options import where
from engine.options.command import Command, Group
from engine.options.facts import FactChanges, FactSides, FactSource, fact_of
from engine.options.meanings import MEANINGS
from engine.options.replay import STREAMS, WHERE, roles_of
from engine.runtime.cache_folders import LANES, cache_home

COMMAND = Command(
    "prepare",
    MEANINGS["prepare"],
    (
        STREAMS,
        WHERE,
        Group("fact relation", (FactSource, FactSides, FactChanges)),
        Group("output", (where.Payload,)),
    ),
    example="winnow prepare --left left.parquet --right right.parquet --on key --time ts",
    common="left right on time lanes partition_by fact cache columns engine",
)


def run(asked: Asked) -> int:
    """Write the lanes, or find them, and print where they are."""
    given = asked.given
    left = open_archive(given.needed("left"), "left")
    right = open_archive(given.needed("right"), "right")
    both = roles_of(given, "left"), roles_of(given, "right")
    join = fact_of(given)
    fact = None
    if join is not None:
        streams = (left, both[0]), (right, both[1])
        fact = facts_of(open_archive(join.path, "fact"), join.roles, streams)
    with running(asked, given, (left.where, right.where)) as job:
        prepared = prepare_cached(
            left,
            right,
            *both,
            cache=given["cache"] or cache_home() / LANES,
            lanes=given["lanes"] or 1,
            bad_rows=given["bad_rows"],
            payload=given["columns"] == "all",
            executor=job.executor,
            progress=job.progress,
            fact=fact,
        )
    for side, stream in zip(("left", "right"), prepared.streams, strict=True):
        print(  # noqa: T201 - the command's answer
            f"{side}: {stream.rows:,} rows, {stream.joined:,} in lanes, "
            f"{stream.null_keys:,} with null keys, {stream.rejected:,} rejected"
        )
    lanes = len(prepared.lanes)
    print(f"{lanes:,} lane{'s'[: lanes != 1]} in {prepared.folder}")  # noqa: T201
    return 0
