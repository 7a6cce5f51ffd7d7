"""What a command line leaves of a job file: it replaces what it overlaps, and what it excludes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.options.command import Command
from engine.options.option import Scope, variants_of

EXCLUDED: Mapping[str, tuple[str, ...]] = {
    "memory": ("fraction",),
    "memory_left": ("memory", "fraction", "split"),
    "memory_right": ("memory", "fraction", "split"),
    "fraction": ("memory", "memory_left", "memory_right", "overflow"),
    "plan": ("policy", "params", "split", "estimator"),
    "policy": ("plan",),
}
"""By an option of the command line, those of a job file that do not go with it.

A value of one stream stands beside that of both, but for memory: see `laid_over`.
"""


def laid_over(command: Command, line: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw values of a command line, and those of a job file that it leaves.

    An option of both streams replaces those of one; see `EXCLUDED` for others. Of an option that
    both give, its kind says what is left of the file's: parameters, and values by stream, are
    replaced one by one.

    Parameters
    ----------
    line, file : mapping
        By keyword.

    Raises
    ------
    SpecError
        If a value that is replaced is wrong: it is, though the command line wins.

    Examples
    --------
    >>> from engine.options.replay import REPLAY
    >>> laid_over(REPLAY, {"window": 50}, {"window_left": 1, "lanes": 2})
    {'lanes': 2, 'window': 50}
    """
    gone = {
        other
        for name in line
        for other in (
            *EXCLUDED.get(name, ()),
            *(variants_of(name) if command.options[name].scope is Scope.SIDE else ()),
        )
    }
    for name in file.keys() & (gone | line.keys()):
        command.options[name].read(file[name])
    left = {name: value for name, value in file.items() if name not in gone}
    for name, value in line.items():
        option = command.options[name]
        left[name] = option.kind.over(option.written, value, left[name]) if name in left else value
    return left
