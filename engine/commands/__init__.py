"""``winnow``: the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from engine.commands import (
    allocate,
    bound,
    explain,
    generate,
    lookup,
    multijoin,
    policies,
    prepare,
    profile,
    replay,
    sample,
    size,
    sweep,
)
from engine.commands.engines import Command, EngineRun, registered_commands
from engine.runtime.errors import WinnowError
from engine.runtime.host import keep_freed_memory

_COMMANDS = {
    "replay": (replay, "replay two archived streams through a window join within a memory budget"),
    "sweep": (sweep, "replay one archive under a grid of policies, budgets, windows and seeds"),
    "sample": (sample, "sample a join within a memory budget, and estimate aggregates of it"),
    "bound": (bound, "find the best possible result within a memory budget, or bounds of it"),
    "allocate": (allocate, "divide one memory over several joins so that none does too badly"),
    "multijoin": (
        multijoin,
        "join 2 to 8 streams on any predicate, exactly or within a CPU budget",
    ),
    "lookup": (lookup, "join one archived stream with a relation that may change meanwhile"),
    "explain": (explain, "say which order a multi-way join should take, and what each costs"),
    "prepare": (prepare, "write the lane files of two archives ahead of their replays"),
    "profile": (profile, "measure what two archives are like, and say which policy suits them"),
    "size": (size, "say what a cluster must be given for a replay, from a profile"),
    "generate": (generate, "write the papers' synthetic streams"),
    "policies": (policies, "list the retention policies and their parameters"),
}


def _parser(others: Mapping[str, Command]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="winnow",
        description="Approximate sliding-window joins of archived streams within a memory budget.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, meaning) in _COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=meaning, description=meaning))
    for name, other in others.items():
        meaning = other.MEANING
        other.add_arguments(commands.add_parser(name, help=meaning, description=meaning))
    return parser


def main(
    argv: Sequence[str] | None = None,
    engines: Mapping[str, EngineRun] | None = None,
    commands: Mapping[str, Command] | None = None,
) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default the process's own.
    engines : mapping, optional
        Engines by name beside the installed ones, for programs shipped without installation.
    commands : mapping, optional
        Commands by name beside the installed ones, for the same.

    Returns
    -------
    int
        0 if it was done, 2 if the user has something to put right (said on standard error).
    """
    keep_freed_memory()
    others = registered_commands(commands or {})
    args = _parser(others).parse_args(argv)
    args.engines = dict(engines or {})
    own = _COMMANDS.get(args.command)
    command = others[args.command] if own is None else own[0]
    try:
        return int(command.run(args))
    except WinnowError as error:
        print(f"winnow {args.command}: error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(f"winnow {args.command}: stopped; nothing was written", file=sys.stderr)  # noqa: T201
        return 130
