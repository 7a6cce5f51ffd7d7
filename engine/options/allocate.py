"""An allocation: the options of its file, and the joins that they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, TypedDict

from engine.options import deciding, streams, where
from engine.options.budget import Amount, parse_amount
from engine.options.command import Command, Given, Group, read_table, values_of
from engine.options.kinds import NUMBER, Whole, as_text
from engine.options.named import PARAMETERS
from engine.options.option import Option
from engine.options.replay import JobOptions, job_of
from engine.options.storage import ANYWHERE
from engine.replay.layout import ESTIMATORS
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place, storing

RECALL, ERROR = "recall", "error"
METRICS = (RECALL, ERROR)
METHODS = ("uniform", "eq-cluster", "pps-cluster")
"""Samples whose error is known before they are taken."""
OF_METRIC = {RECALL: ("policy", "estimator", "probe", "profile"), ERROR: ("method",)}
"""Options of a join that one metric alone asks for."""


class Divided(TypedDict, total=False):
    """What joins share, and how it is divided; the options of the file itself."""

    memory: Annotated[
        int | str,
        Option("tuples of all joins together, or a percentage of what their exact joins need"),
    ]
    metric: Annotated[
        str,
        Option(
            "recall, or the relative error of the estimated sum of importance",
            default=RECALL,
            choices=METRICS,
        ),
    ]
    refine: Annotated[
        int | None,
        Option(
            "times that the memory is divided again by what replays measured (default 1; of an "
            "error 0)",
            Whole(least=0, range="give a number of rounds, 0 or more"),
        ),
    ]


class JoinOfSeveral(TypedDict, total=False):
    """A join that shares a memory."""

    name: Annotated[str, Option("of the join, in tables and messages (default: join 1, ...)")]
    weight: Annotated[float, Option("of its quality: P5's w", NUMBER, 1.0)]
    policy: Annotated[
        str | None, Option("sheds its load (default auto: the best in short replays)")
    ]
    param: Annotated[Mapping[str, Any] | None, Option("of its policy", PARAMETERS)]
    estimator: Annotated[
        str | None,
        Option("where matches are counted (default: history for prob)", choices=ESTIMATORS),
    ]
    method: Annotated[
        str | None,
        Option("samples its outputs (default: of the least expected error)", choices=METHODS),
    ]
    profile: Annotated[
        where.PathLike | None, Option("in place of a pass over its archives", ANYWHERE)
    ]


_STREAMS = (
    streams.Archives, streams.Columns, streams.Windows, streams.TimeUnit, streams.Probe,
    streams.Outputs, streams.Lanes, streams.Seed, streams.Reading, where.Device,
)  # fmt: skip
JOIN = Command(
    "join",
    "a join of several that share a memory",
    (
        Group("join", (JoinOfSeveral,)),
        Group("streams", _STREAMS, without=("partition_by",)),
    ),
)
FILE = Command("allocate", "the memory and the joins that share it", (Group("", (Divided,)),))


def in_join(message: str) -> str:
    """Return a message with a join's keys in place of the options of the same meaning.

    Examples
    --------
    >>> in_join("give --time-unit, or another --cache")
    'give time_unit, or another --cache'
    """
    keys = {option.written: name for name, option in JOIN.options.items()}
    return re.sub(r"(?<![\w./-])--[a-z][a-z0-9-]*", lambda own: keys.get(own[0], own[0]), message)


def titled(name: str) -> str:
    """Return a join's name as messages write it.

    Examples
    --------
    >>> titled("orders"), titled("join 1")
    ('join orders', 'join 1')
    """
    return name if name.startswith("join ") else f"join {name}"


@dataclass(frozen=True)
class JoinOptions:
    """One join of several that share a memory.

    Parameters
    ----------
    job : JobOptions
        Its archives and windows; its memory and policy are settled here.
    weight : float
        Weight of its quality: P5's w_i.
    policy : str or None
        Policy that sheds its load; None: the best in short replays, or with a profile AGE or PROB,
        by the model that fits better.
    estimator : str or None
        Of match counts; None: history for PROB, else that of replays.
    method : str or None
        Sampling method; None: the one with the least expected error.
    profile : Path, Uri or None
        A profile that replaces the pass over the archives.
    asked : tuple of str
        Options of `OF_METRIC` that were given.
    """

    name: str
    job: JobOptions
    weight: float = 1.0
    policy: str | None = None
    estimator: str | None = None
    method: str | None = None
    profile: Place | None = None
    asked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.weight > 0 and isfinite(self.weight)):
            raise SpecError(
                f"weight of {titled(self.name)} is {self.weight:g}; give a finite number above 0"
            )


@dataclass(frozen=True)
class AllocateOptions:
    """Several joins and the memory that they share.

    Parameters
    ----------
    memory : Amount
        Tuples of all joins and both sides together, or a share of what their exact joins need.
    metric : {"recall", "error"}
        P5's Q: the recall of each join, or the relative error of the estimated sum of importance.
    refine : int or None
        Rounds in which the memory is divided again by the measured recall; None: 1 for recall.
        Errors are not refined: a sample only estimates its error, and the least of several
        estimates is the luckiest, not the best.
    """

    memory: Amount
    joins: tuple[JoinOptions, ...]
    metric: str = RECALL
    refine: int | None = None

    def __post_init__(self) -> None:
        if not self.joins:
            raise SpecError("there are no joins: name them, each in a table [[join]]")
        names = [join.name for join in self.joins]
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"two joins have the name {name!r}: give each its own")
        if self.metric == ERROR and not (self.memory.tuples or self.memory.share):
            raise SpecError("memory is 0; a sample needs some: give 1 tuple or more")
        if self.rounds and self.metric == ERROR:
            raise SpecError(
                f"refine is {self.rounds}, but metric is 'error', which samples only estimate: "
                "leave refine out, or set metric = 'recall'"
            )
        for join in self.joins:
            self._check(join)

    @property
    def archives(self) -> tuple[str, ...]:
        """Where the joins' streams are, each once."""
        return tuple(dict.fromkeys(own for join in self.joins for own in join.job.archives))

    @property
    def rounds(self) -> int:
        """Rounds in which the memory is divided again."""
        if self.refine is None:
            return 1 if self.metric == RECALL else 0
        return self.refine

    def _check(self, join: JoinOptions) -> None:
        for metric, names in OF_METRIC.items():
            for name in names:
                if metric != self.metric and name in join.asked:
                    raise SpecError(
                        f"{name} of {titled(join.name)} is of another metric than {self.metric}: "
                        f"leave it out, or set metric = {metric!r}"
                    )


def allocate_of(content: Mapping[str, Any], cache: Place | None = None) -> AllocateOptions:
    """Return the allocation that a TOML file, or a dictionary like it, describes.

    Parameters
    ----------
    content : mapping
        ``memory``, ``metric``, ``refine`` and a list ``join``; docs/allocate.md explains each.
    cache : Path or Uri, optional
        Folder of prepared lanes.

    Raises
    ------
    SpecError
        If something is missing, unknown or invalid.
    """
    joins = content.get("join", [])
    if not isinstance(joins, list) or not all(isinstance(join, Mapping) for join in joins):
        raise SpecError("join must be a list of tables, each written as [[join]]")
    with FILE.as_keywords():
        given = read_table(FILE, content, "", besides=("join",))
        if "memory" not in given:
            raise SpecError('memory is missing: give tuples, or a percentage such as "20%"')
        memory = parse_amount(given["memory"], "memory")
    named = enumerate(joins, 1)
    return AllocateOptions(
        memory,
        tuple(_join(join, _name(join.get("name"), number), cache) for number, join in named),
        given["metric"],
        given["refine"],
    )


def _name(given: object, number: int) -> str:
    """Return the name of a join, by default its number."""
    if given is None:
        return f"join {number}"
    name = as_text(f"name of join {number}", given)
    if not name.strip():
        raise SpecError(f"name of join {number} is {name!r}; give some text, or leave it out")
    return name


def _reached(content: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Have object stores reached as a join says, else as all are."""
    own = JOIN.storage(values_of(JOIN, content, ""))
    return storing(own) if own else nullcontext()


def _join(content: Mapping[str, Any], name: str, cache: Place | None) -> JoinOptions:
    where = f"{titled(name)}: "
    with JOIN.as_keywords(where), _reached(content):
        given = read_table(JOIN, content, "")
        for side in ("left", "right"):
            if side not in given:
                raise SpecError(f"--{side} is missing: name the archive of the {side} stream")
        named = given["policy"] not in (None, deciding.AUTO)
        if "param" in given and not named:
            raise SpecError("--param is of a policy: name it with policy")
        shared = {
            key: own for key, own in given.items() if key not in JoinOfSeveral.__annotations__
        }
        shared |= given.chosen("estimator")
        if named:
            shared |= {"policy": given["policy"], "params": given["param"]}
        if cache is not None:
            shared["cache"] = cache
        job = job_of(Given(given.options, shared))
    asked = tuple(name for names in OF_METRIC.values() for name in names if name in given)
    policy = job.policy if named else None
    return given.fill(JoinOptions, name=name, job=job, policy=policy, asked=asked)
