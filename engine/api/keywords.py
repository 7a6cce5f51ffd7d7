"""Functions whose keywords are a command's options."""

from __future__ import annotations

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from engine.api.result import Result
from engine.options.command import Command
from engine.options.option import Interface, Option, options_of
from engine.options.storage import STORAGE
from engine.report.recording import recording
from engine.report.shown import Request
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.errors import did_you_mean
from engine.runtime.storage.uris import storing

P = ParamSpec("P")
R = TypeVar("R")


def takes(command: Command, part_of: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose ``**options`` are those of a command.

    Its help lists the options, its signature has their defaults, and its errors name them as
    keywords. `part_of` is the function that users call, if it is another.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(function)
        fixed = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = {parameter.name for parameter in fixed}
        (declared,) = get_args(get_type_hints(function)["options"])
        options = [
            option
            for name, option in options_of(declared).items()
            if name not in named and option.interface is not Interface.COMMAND_LINE
        ]
        known = named | {option.name for option in options}
        others = {also: option.name for option in options for also in option.also}

        @wraps(function)
        def called(*args: P.args, **keywords: P.kwargs) -> R:
            for also in keywords.keys() & others.keys():
                if others[also] in keywords:
                    raise TypeError(f"{also} is another name of {others[also]}: give one of them")
                keywords[others[also]] = keywords.pop(also)
            for name in keywords.keys() - known:
                instead = command.instead.get(name)
                hint = did_you_mean(name, known)
                lists = f": help({part_of or function.__name__}) lists all"
                remedy = f": {instead}" if instead else f".{hint}" if hint else lists
                raise TypeError(f"unexpected keyword {name!r}{remedy}")
            check_executor(keywords.get("executor"))
            _tell_of_compiling()
            asked = partial(_request, command, own, args, keywords)
            with (
                command.as_keywords(),
                storing(command.storage(keywords)),
                recording(asked=asked),
            ):
                found = function(*args, **keywords)
                if isinstance(found, Result):
                    found.asked(asked(), command.in_keywords)
                return found

        return _listing(called, fixed, options)

    return decorate


def lists(*declared: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that hands its ``**options`` on: its help lists those of `declared`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        fixed = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        options = {name: own for one in declared for name, own in options_of(one).items()}
        shown = (own for own in options.values() if own.interface is not Interface.COMMAND_LINE)
        return _listing(function, fixed, list(shown))

    return decorate


def _listing(
    function: Callable[P, R], fixed: list[inspect.Parameter], options: list[Option]
) -> Callable[P, R]:
    """Give a function a signature and a help that list options."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter(own.name, by_name, default=own.default) for own in options]
    function.__signature__ = inspect.signature(function).replace(  # type: ignore[attr-defined]
        parameters=[*fixed, *listed]
    )
    function.__doc__ = _documented(function.__doc__ or "", options)
    return function


def check_executor(executor: object) -> None:
    """Raise `TypeError` if what is to run tasks cannot."""
    if executor is not None and not hasattr(executor, "slots"):
        raise TypeError(
            f"executor is {executor!r}, which runs no tasks: leave it out for threads of this "
            "process, or give spark_plugin.executor.SparkExecutor(session)"
        )


def _tell_of_compiling() -> None:
    """Have an interactive session, such as a notebook, told of what takes up to a minute once."""
    if COMPILED.tell is None and hasattr(sys, "ps1"):
        COMPILED.tell = lambda line: print(f"winnow: {line}", file=sys.stderr)  # noqa: T201


def _request(
    command: Command, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
) -> Request:
    """Return what a call has asked: frames stand by the names of their parameters."""
    bound = signature.bind(*args, **keywords).arguments
    options = bound.pop("options", {})
    given = {
        name: value
        for name, value in (bound | options).items()
        if value is not None and name not in ("executor", "progress")
    }
    shown = tuple(
        (name, _written(name, value), command.options[name].help)
        for name, value in given.items()
        if name in command.options
    )
    by_name = [own.name for own in signature.parameters.values() if own.kind is own.KEYWORD_ONLY]
    return Request(call_text(command.name, given, {*options, *by_name}), shown)


def call_text(task: str, given: Mapping[str, Any], named: Collection[str]) -> str:
    """Return a call from Python; values stand by their names if these are among `named`.

    Examples
    --------
    >>> call_text("replay", {"left": object(), "right": "b.parquet", "window": 9}, ["window"])
    "winnow.replay(left, 'b.parquet', window=9)"
    """
    told = [
        f"{name}={_written(name, value)}" if name in named else _written(name, value)
        for name, value in given.items()
    ]
    return f"winnow.{task}({', '.join(told)})"


def _written(name: str, value: object) -> str:
    """Return a value as Python writes it, or the name of what is too large for that."""
    if name.replace("-", "_") == "storage_option":
        value = STORAGE.public(value)
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_written(name, own) for own in value)}]"
    if isinstance(value, Mapping):
        inside = (f"{key!r}: {_written(str(key), own)}" for key, own in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, (str, bool, int, float, timedelta, datetime)):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return name


def _documented(text: str, options: list[Option]) -> str:
    """Return a docstring with the options listed before what is returned."""
    text = inspect.cleandoc(text)  # as Python 3.13 hands it over already
    lines = []
    for option in options:
        choices = f"{{{', '.join(option.choices)}}}: " if option.choices else ""
        words = textwrap.wrap(choices + option.described, 88)
        lines += [option.name, *(f"    {line}" for line in words)]
    head, section, rest = re.split(r"(\n(?:Returns|Examples)\n)", text, maxsplit=1)
    parameters = "" if "Parameters\n" in head else "\nParameters\n----------\n"
    return f"{head.rstrip()}\n{parameters}" + "\n".join(lines) + f"\n{section}{rest}"
