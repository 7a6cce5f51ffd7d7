"""An allocation as a TOML file says it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.options.allocate import RECALL, AllocateOptions, JoinOptions
from engine.options.budget import parse_amount
from engine.options.keywords import job_of
from engine.runtime.errors import SpecError, did_you_mean

_TOP = ("memory", "metric", "refine", "join")
_OWN = ("name", "weight", "policy", "estimator", "method", "profile", "param")
_COLUMNS = ("on", "left_on", "right_on")
_JOB = (
    "left", "right", *_COLUMNS, "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "window", "window_left", "window_right", "probe",
    "combine", "start_ts", "lanes", "seed", "bad_rows", "device",
)  # fmt: skip
_WHOLE = ("lanes", "seed")
_WORDS = ("left", "right", "name", "policy", "estimator", "method", "profile", "probe", "combine",
          "bad_rows", "device")  # fmt: skip
JOIN_OPTIONS = (*_OWN, *_JOB)


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    SpecError
        If it cannot be read or is none.
    """
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"job file {path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"job file {path} is no TOML: {error}") from None


def options_of(content: Mapping[str, Any], cache: Path | None = None) -> AllocateOptions:
    """Return the allocation that a TOML file, or a dictionary like it, describes.

    Parameters
    ----------
    content : mapping
        ``memory``, ``metric``, ``refine`` and a list ``join``; docs/allocate.md explains each.
    cache : Path, optional
        Folder of prepared lanes.

    Raises
    ------
    SpecError
        If something is missing, unknown or means nothing.
    """
    _known("", content, _TOP)
    memory = content.get("memory")
    if memory is None:
        raise SpecError('memory is missing: give tuples, or a percentage such as "20%"')
    if isinstance(memory, bool):
        raise SpecError(f"memory is {memory}; give tuples, or a percentage such as 20%")
    refine = content.get("refine")
    if refine is not None and (isinstance(refine, bool) or not isinstance(refine, int)):
        raise SpecError(f"refine is {refine!r}; give a whole number of rounds")
    joins = content.get("join", [])
    if not isinstance(joins, list) or not all(isinstance(join, Mapping) for join in joins):
        raise SpecError("join must be a list of tables, each written as [[join]]")
    return AllocateOptions(
        parse_amount(str(memory), "memory"),
        tuple(_join(join, number, cache) for number, join in enumerate(joins, 1)),
        content.get("metric", RECALL),
        refine,
    )


def _known(where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise SpecError(
                f"{where}unknown option {name!r}; known are {', '.join(known)}."
                + did_you_mean(str(name), known)
            )


def _join(given: Mapping[str, Any], number: int, cache: Path | None) -> JoinOptions:
    name = given.get("name", f"join {number}")
    where = f"join {name}: "
    _known(where, given, JOIN_OPTIONS)
    for option, value in given.items():
        _check(where, option, value)
    for side in ("left", "right"):
        if side not in given:
            raise SpecError(f"{where}{side} is missing: name the archive of the {side} stream")
    told: dict[str, Any] = {option: value for option, value in given.items() if option in _JOB[2:]}
    for option in _COLUMNS:
        if isinstance(told.get(option), str):
            told[option] = [part.strip() for part in told[option].split(",") if part.strip()]
    policy, params = given.get("policy"), given.get("param")
    if params and policy is None:
        raise SpecError(f"{where}param is of a policy: name it with policy")
    if policy is not None:
        told |= {"policy": policy, "params": params}
    left, right = (os.fspath(given[side]) for side in ("left", "right"))
    try:
        job = job_of(left, right, None, cache, told)  # type: ignore[arg-type]
    except SpecError as error:
        raise SpecError(f"{where}{error}") from None
    profile = given.get("profile")
    return JoinOptions(
        name,
        job,
        float(given.get("weight", 1.0)),
        policy if policy is None else job.policy,
        given.get("estimator"),
        given.get("method"),
        None if profile is None else Path(profile),
    )


def _check(where: str, option: str, value: object) -> None:
    """Raise `SpecError` for a value of a kind that the option cannot be of."""
    kinds: tuple[type, ...] = (str, int)
    wanted = "text, or a whole number"
    if option in _WORDS:
        kinds, wanted = (str, os.PathLike), "text"
    elif option in _WHOLE:
        kinds, wanted = (int,), "a whole number"
    elif option == "weight":
        kinds, wanted = (int, float), "a number"
    elif option == "param":
        kinds, wanted = (Mapping,), "a table, as in [join.param]"
    elif option in _COLUMNS:
        kinds, wanted = (str, list, tuple), "a column, or a list of columns"
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise SpecError(f"{where}{option} is {value!r}; give {wanted}")
