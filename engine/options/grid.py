"""The grid of a sweep: its lists, as given and as points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from engine.options.budget import SPLITS, Amount, Split, parse_amount, parse_split
from engine.options.kinds import POSITIVE, SEED
from engine.options.ranges import distinct, expand, parts_of
from engine.policies import POLICIES, Value, policy_or_sample
from engine.replay.layout import ESTIMATORS
from engine.runtime.errors import SpecError, chosen, did_you_mean
from engine.runtime.time_units import parse_window

MEASURES = ("recall", "importance_recall")
ALL = "all"


class Target(NamedTuple):
    """A measure and what it has to reach."""

    measure: str
    value: float


def parse_splits(text: str) -> tuple[Split, ...]:
    """Return the splits of a list such as ``even,0.8``, each once; ``all`` is all with names."""
    found: list[Split] = []
    for part in parts_of(text, "--splits"):
        found += SPLITS.values() if part.lower() == ALL else [parse_split(part, "--splits")]
    return tuple(dict.fromkeys(found))


def parse_estimators(text: str) -> tuple[str, ...]:
    """Return the estimators of a list, each once; ``all`` is every one."""
    named: list[str] = []
    for part in parts_of(text, "--estimators"):
        whole = part.lower() == ALL
        named += ESTIMATORS if whole else [chosen("--estimators", part, ESTIMATORS)]
    return tuple(dict.fromkeys(named))


def parse_lanes(text: str) -> tuple[int, ...]:
    """Return the numbers of lanes of a list or range such as ``1,4`` or ``1:16:x2``."""

    def number(word: str) -> Fraction:
        return Fraction(POSITIVE.read("--lanes", word))

    found: list[Fraction] = []
    for part in parts_of(text, "--lanes"):
        found += expand(part, "--lanes", number)
    return tuple(dict.fromkeys(int(value) for value in found))


def parse_policies(text: str) -> tuple[str, ...]:
    """Return the policies named, each once; ``all`` is all but custom and those that sample."""
    named: list[str] = []
    for part in parts_of(text, "--policies"):
        named += (
            [name for name in POLICIES if name != "custom"]
            if part.lower() == ALL
            else [policy_or_sample(part).name]
        )
    return tuple(dict.fromkeys(named))


def parse_memory(text: str) -> tuple[Amount, ...]:
    """Return the budgets of a list such as ``200,400,10%,1000:5000:500,1%:100%:x2``.

    Raises
    ------
    SpecError
        If a part is no budget and no range of them.

    Examples
    --------
    >>> [str(amount) for amount in parse_memory("5,10%:30%:10%,8:40:x2")]
    ['5', '10%', '20%', '30%', '8', '16', '32', '40']
    """
    found: list[Amount] = []
    for part in parts_of(text, "--memory"):
        words = [word for word in part.split(":") if not re.match(r"\s*[xX*]", word)]
        percent = [word.strip().endswith("%") for word in words]
        if any(percent) and not all(percent):
            raise SpecError(
                f"--memory has the range {part!r} of tuples and percentages: give one of them"
            )
        values = expand(part, "--memory", _memory)
        found += (
            [Amount(share=value) for value in values]
            if percent[0]
            else [Amount(tuples=int(value)) for value in values]
        )
    return tuple(dict.fromkeys(found))


def _memory(text: str) -> Fraction:
    amount = parse_amount(text, "--memory")
    return Fraction(amount.tuples or 0) if amount.share is None else amount.share


def parse_windows(text: str, unit: str) -> tuple[int, ...]:
    """Return windows in ticks, from ticks or durations, lists or ranges.

    Parameters
    ----------
    unit : str
        As for `engine.runtime.time_units.parse_window`.

    Examples
    --------
    >>> parse_windows("1min,10min:30min:10min", "s"), parse_windows("10:80:x2", "tick")
    ((60, 600, 1200, 1800), (10, 20, 40, 80))
    """

    def ticks(word: str) -> Fraction:
        return Fraction(parse_window(word, unit, "left"))

    found: list[Fraction] = []
    for part in parts_of(text, "--windows"):
        found += [Fraction(int(value)) for value in expand(part, "--windows", ticks)]
    return tuple(int(value) for value in distinct(found))


def windows_typed(text: str, unit: str) -> dict[int, str]:
    """Return the windows of `parse_windows` as they were typed, by ticks, but for ranges.

    Examples
    --------
    >>> windows_typed("1min,10min:30min:10min,90", "s")
    {60: '1min', 90: '90'}
    """
    parts = [part for part in parts_of(text, "--windows") if ":" not in part]
    return {parse_window(part, unit, "left"): part for part in parts}


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of a list or range such as ``0,1,7`` or ``0:9``."""

    def seed(word: str) -> Fraction:
        if not re.fullmatch(r"[+-]?\d+", word.strip()):
            raise SpecError(f"--seeds has {word!r}; give whole numbers, as in 0,1,2 or 0:9")
        number = SEED.read("--seeds", word)
        return Fraction(number - 2**64 if number >= 2**63 else number)  # draws the same

    found: list[Fraction] = []
    for part in parts_of(text, "--seeds"):
        found += expand(part, "--seeds", seed, default=Fraction(1))
    if any(value.denominator != 1 for value in found):
        raise SpecError(f"--seeds is {text!r}, whose factor leaves whole numbers: give another")
    return tuple(int(value) for value in distinct(found))


def parse_targets(items: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets ``measure=value``; several may stand in one item, with commas.

    Examples
    --------
    >>> parse_targets(["recall=0.9", "importance_recall=95%"])
    (Target(measure='recall', value=0.9), Target(measure='importance_recall', value=0.95))
    """
    found: list[Target] = []
    for item in items:
        for part in parts_of(item, "--target"):
            name, equals, value = (word.strip() for word in part.partition("="))
            measure = name.lower().replace("-", "_")
            if not equals or measure not in MEASURES:
                raise SpecError(
                    f"--target is {part!r}; write measure=value with a measure of "
                    f"{', '.join(MEASURES)}, such as importance_recall=0.95."
                    + did_you_mean(measure, MEASURES)
                )
            found.append(Target(measure, _share(part, value)))
    return tuple(dict.fromkeys(found))


def _share(part: str, value: str) -> float:
    if not re.fullmatch(r"(\d+(\.\d*)?|\.\d+)\s*%?", value):
        raise SpecError(f"--target is {part!r}; give a share such as 0.95 or 95%")
    share = Fraction(value.rstrip("% ")) / (100 if value.endswith("%") else 1)
    if not 0 < share <= 1:
        raise SpecError(f"--target is {part!r}; it must be more than 0 and at most 1 (100%)")
    return float(share)


def split_parameters(
    given: Mapping[str, Value], policies: Sequence[str]
) -> dict[str, dict[str, Value]]:
    """Return each policy's own parameters.

    Parameters
    ----------
    given : mapping
        ``policy.name`` sets one policy's parameter, ``name`` that of all policies that have it; a
        parameter's other names, such as additive's alpha for A, count where none has it as its own.

    Raises
    ------
    SpecError
        If no policy of the sweep has it.

    Examples
    --------
    >>> split_parameters({"A": 2.0, "multiplicative.A": 1.0}, ["additive", "multiplicative"])
    {'additive': {'A': 2.0}, 'multiplicative': {'A': 1.0}}
    """
    known = {name: _names(name) for name in policies}
    found: dict[str, dict[str, Value]] = {name: {} for name in policies}
    for name in sorted(given, key=lambda name: "." in name):
        policy, dot, parameter = name.rpartition(".")
        if dot:
            policy = policy_or_sample(policy).name
            if policy not in found:
                raise SpecError(
                    f"--param {name} is of policy {policy}, which is not in --policies: add it"
                )
            having = [policy]
        else:
            having = [policy for policy in policies if parameter in known[policy].values()]
            having = having or [policy for policy in policies if parameter in known[policy]]
        if not having or parameter not in known[having[0]]:
            theirs = [known[policy]] if dot else list(known.values())
            every = sorted({one for names in theirs for one in names})
            who = f"policy {policy} has no" if dot else "none of the policies has a"
            raise SpecError(
                f"--param {name}: {who} parameter {parameter!r} (there are: "
                f"{', '.join(every) or 'none'})." + did_you_mean(parameter, every)
            )
        for one in having:
            found[one][known[one][parameter]] = given[name]
    return found


def _names(policy: str) -> dict[str, str]:
    """Return the names of a policy's parameters, aliases included, and what they stand for."""
    parameters = policy_or_sample(policy).parameters
    return {alias: p.name for p in parameters for alias in (p.name, *p.aliases)}
