"""``winnow``: the command line.

Each module with a `COMMAND` is a subcommand: `COMMAND` declares its options, `run` carries it
out; it is imported when it is called. It imports everything below. A newcomer starts with
`replay.py`; `parser.py` makes argparse's parser of a command's options, and `line.py` runs the
command that a line names.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from engine.commands.at_once import ends_at_once

if TYPE_CHECKING:
    from engine.commands.asked import Engine, Plugin


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
    alone = argv is None and threading.current_thread() is threading.main_thread()
    with ends_at_once() if alone else nullcontext():
        from engine.commands.line import answer  # noqa: PLC0415 - 0.1 s
    return answer(argv, engines or {}, commands or {}, alone=alone)
