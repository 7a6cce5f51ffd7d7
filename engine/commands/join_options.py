"""Options of the commands that join within a memory budget, and the job that they describe."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.fact_options import FACT_OPTIONS, fact_options
from engine.commands.given import Given, number, parameters, required, roles, text
from engine.optimum.settings import METHODS, Effort
from engine.options.budget import EVEN, parse_amounts
from engine.options.replay import DEFAULT_POLICY, REFERENCES, JobOptions
from engine.replay.layout import PROBES
from engine.runtime.errors import SpecError
from gpu_kernels.combine import COMBINES

JOIN_OPTIONS = {
    "left", "right", "on", "left_on", "right_on", "time", "left_time", "right_time", "importance",
    "left_importance", "right_importance", "partition_by", "lanes", "bad_rows", "engine", "cache",
    "window", "window_left", "window_right", "memory", "memory_left", "memory_right", "probe",
    "combine", "start_ts", "out", "report",
} | FACT_OPTIONS  # fmt: skip
EFFORT_OPTIONS = {"gap", "seconds"}


def add_join_arguments(
    parser: argparse.ArgumentParser, *, probe: bool = True
) -> argparse._ArgumentGroup:
    """Add windows and budget, and when arrivals probe; return the budget's group."""
    join = parser.add_argument_group("join")
    join.add_argument(
        "--window",
        help="ticks that a tuple joins for after its arrival, the last included, or a duration "
        "such as 10min on timestamp columns",
    )
    join.add_argument("--window-left", help="the same for left tuples")
    join.add_argument("--window-right", help="the same for right tuples")
    join.add_argument("--combine", help=f"importance of an output: {', '.join(COMBINES)}")
    join.add_argument("--start-ts", help="outputs before this time are neither written nor counted")
    budget = parser.add_argument_group("budget")
    budget.add_argument(
        "--memory",
        help="tuples in memory, half a side, or a percentage of what the exact join needs at its "
        "peak, such as 10%% (default: an exact join)",
    )
    budget.add_argument("--memory-left", help="the same for left tuples alone")
    budget.add_argument("--memory-right", help="the same for right tuples alone")
    if probe:
        budget.add_argument("--probe", help=f"{', '.join(PROBES)}")
    return budget


def add_bound_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks for the best possible beside a result."""
    bound = parser.add_argument_group("best possible")
    bound.add_argument(
        "--bound",
        nargs="?",
        const="auto",
        help="also find the best possible importance within the budget, and the share of it that "
        f"is reached; by {', '.join(METHODS)} (default auto)",
    )
    add_effort_arguments(bound)


def add_effort_arguments(group: argparse._ArgumentGroup) -> None:
    """Add how far bounds are to be tightened."""
    group.add_argument(
        "--gap", type=float, help="relative gap of the bounds that is small enough (default 0)"
    )
    group.add_argument(
        "--seconds",
        type=float,
        help="seconds after which the bounds are tightened no more (default 60)",
    )


def windows_given(given: Given) -> list[str]:
    """Return W of left and right as they were given.

    Raises
    ------
    SpecError
        If one is missing.
    """
    windows = []
    for side in ("left", "right"):
        window = text(given, f"window_{side}") or text(given, "window")
        if window is None:
            raise SpecError("--window is missing: give it, or --window-left and --window-right")
        windows.append(window)
    return windows


def job_options(given: Given) -> JobOptions:
    """Return the job that the options describe.

    Raises
    ------
    SpecError
        If one is missing or means nothing.
    """
    windows = windows_given(given)
    split = text(given, "split") or EVEN
    memory = parse_amounts(
        text(given, "memory"), text(given, "memory_left"), text(given, "memory_right"), split
    )
    out, cache, plan = text(given, "out"), text(given, "cache"), text(given, "plan")
    profile = text(given, "profile")
    bound = text(given, "bound")
    for name in {"policy", "param"} & given.keys():
        if plan is not None:
            raise SpecError(f"--plan says who stays, and so does --{name}: give one of them")
    return JobOptions(
        left=required(given, "left"),
        right=required(given, "right"),
        left_roles=roles(given, "left"),
        right_roles=roles(given, "right"),
        window_left=windows[0],
        window_right=windows[1],
        memory=memory,
        split=split,
        policy=text(given, "policy") or DEFAULT_POLICY,
        parameters=parameters(given),
        estimator=text(given, "estimator") or "memory",
        probe=text(given, "probe") or "before_admission",
        combine=text(given, "combine") or "min",
        start_ts=text(given, "start_ts"),
        lanes=number(given, "lanes"),
        seed=number(given, "seed") or 0,
        device=text(given, "device") or "auto",
        bad_rows=text(given, "bad_rows") or "error",
        columns=text(given, "columns") or "all",
        out=None if out is None else Path(out),
        cache=None if cache is None else Path(cache),
        plan=None if plan is None else Path(plan),
        bound=None if bound is None else effort(given, bound),
        fact=fact_options(given),
        profile=None if profile is None else Path(profile),
        reference=text(given, "reference") or REFERENCES[0],
    )


def check_effort(given: Given) -> None:
    """Raise `SpecError` if limits are given for bounds that nobody asked for."""
    for name in sorted(EFFORT_OPTIONS & given.keys()):
        if "bound" not in given:
            raise SpecError(f"--{name} says how good bounds must be: give --bound as well")


def effort(given: Given, method: str) -> Effort:
    """Return how hard the best possible is to be looked for.

    Raises
    ------
    SpecError
        If a limit is no number, or means nothing.
    """
    found = {}
    for name in EFFORT_OPTIONS & given.keys():
        try:
            found[name] = float(given[name])
        except (TypeError, ValueError):
            raise SpecError(f"--{name} is {given[name]!r}; give a number") from None
    return Effort(method, **found)
