"""``winnow``: the command line.

Each module with a `COMMAND` is a subcommand: `COMMAND` declares its options, `run` carries it
out. It imports everything below. A newcomer starts with `replay.py`; `parser.py` makes argparse's
parser of the commands' options.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from engine.commands import (
    allocate,
    bound,
    estimate,
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
from engine.commands.parser import parsed
from engine.commands.running import Asked, Engine, Plugin, registered_commands
from engine.runtime.errors import WinnowError
from engine.runtime.host import keep_freed_memory

_MODULES = (
    replay, sweep, sample, estimate, bound, allocate, multijoin, lookup, explain, prepare, profile,
    size, generate, policies,
)  # fmt: skip


def all_commands(given: Mapping[str, Plugin] | None = None) -> dict[str, Plugin]:
    """Return all commands by name: winnow's, those of other packages, and those given."""
    own: dict[str, Plugin] = {module.COMMAND.name: module for module in _MODULES}
    return own | registered_commands(given or {})


def main(
    argv: Sequence[str] | None = None,
    engines: Mapping[str, Engine] | None = None,
    commands: Mapping[str, Plugin] | None = None,
) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default the process's own.
    engines : mapping, optional
        Engines by name in addition to the installed ones, for programs shipped without
        installation.
    commands : mapping, optional
        Commands by name in addition to the installed ones, for the same purpose.

    Returns
    -------
    int
        0 on success, 2 after an error that the user can correct, 130 if interrupted; the message is
        on standard error.
    """
    keep_freed_memory()
    modules = all_commands(commands)
    words = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in words if word in modules), "")
    try:
        command, values = parsed(words, {name: own.COMMAND for name, own in modules.items()})
        return modules[name].run(Asked(command, values, dict(engines or {})))
    except WinnowError as error:
        print(f"winnow {name}: error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(f"winnow {name}: stopped; nothing was written", file=sys.stderr)  # noqa: T201
        return 130
