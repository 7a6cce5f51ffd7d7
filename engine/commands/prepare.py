"""``winnow prepare``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.archives.source import open_archive
from engine.commands.engines import engine_of
from engine.commands.fact_options import FACT_OPTIONS, add_fact_arguments, fact_options
from engine.commands.given import (
    add_archive_arguments,
    collect,
    number,
    required,
    roles,
    text,
)
from engine.commands.progress import progress_bar
from engine.jobs.opening import open_facts
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare_cached
from engine.runtime.executors import Executor
from engine.runtime.jit import cache_home

_OPTIONS = {
    "left", "right", "on", "left_on", "right_on", "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "partition_by", "lanes", "bad_rows", "engine", "cache",
    "columns",
} | (FACT_OPTIONS - {"fact_access"})  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow prepare``."""
    add_archive_arguments(parser)
    add_fact_arguments(parser)
    parser.add_argument("--columns", help="all (default), or ids: leave the payload out")


def run(args: argparse.Namespace) -> int:
    """Write the lanes, or find them, and say where they are."""
    given = collect(args, _OPTIONS)
    left = open_archive(required(given, "left"), "left")
    right = open_archive(required(given, "right"), "right")
    cache = text(given, "cache")
    both = roles(given, "left"), roles(given, "right")
    told = fact_options(given)
    fact = None if told is None else open_facts(told, ((left, both[0]), (right, both[1])))
    with progress_bar() as progress:

        def work(executor: Executor) -> Prepared:
            return prepare_cached(
                left,
                right,
                *both,
                cache=cache_home() / "lanes" if cache is None else Path(cache),
                lanes=number(given, "lanes") or 1,
                bad_rows=text(given, "bad_rows") or "error",
                payload=(text(given, "columns") or "all") == "all",
                executor=executor,
                progress=progress,
                fact=fact,
            )

        prepared: Prepared = engine_of(args, text(given, "engine"))(work)
    for side, stream in zip(("left", "right"), prepared.streams, strict=True):
        print(  # noqa: T201 - the command's answer
            f"{side}: {stream.rows:,} rows, {stream.joined:,} in lanes, "
            f"{stream.null_keys:,} with null keys, {stream.rejected:,} rejected"
        )
    print(f"{len(prepared.lanes)} lanes in {prepared.folder}")  # noqa: T201
    return 0
