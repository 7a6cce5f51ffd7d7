"""Every command at every interface: help, job file, unknown option, bad value, Python, Spark."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

import engine.api.estimate as estimates
import winnow
from engine.commands.line import all_commands
from engine.commands.parser import given_of, parsed
from engine.options.budget import BoundedKind, SplitKind
from engine.options.by_stream import ByStream, ColumnByStream, NamesByStream
from engine.options.command import Command
from engine.options.kinds import Flag, Items, Kind, Names, Number, Numbers, Whole
from engine.options.named import Pairs, Parameters
from engine.options.option import Interface, Option
from engine.options.storage import StorageOptions
from engine.runtime.errors import SpecError, WinnowError
from spark_plugin import dataframe, lookup

EVERY = [module.COMMAND for module in all_commands().values()]
COMMANDS = {own.name: own for command in EVERY for own in command.kinds or [command] if own.options}
WITH_JOB = [name for name, own in COMMANDS.items() if "job" in own.options]

TWINS: dict[str, tuple[Callable[..., Any], ...]] = {
    "replay": (winnow.replay,),
    "sweep": (winnow.sweep,),
    "sample": (winnow.sample,),
    "estimate": (estimates._of_two, estimates._of_several),  # noqa: SLF001 - of winnow.estimate
    "bound": (winnow.bound,),
    "multijoin": (winnow.multijoin,),
    "lookup": (winnow.lookup,),
    "profile": (winnow.profile,),
}
SPARK_TWINS = {"replay": dataframe.replay, "lookup": lookup.lookup}
ELSEWHERE = {"fact_on"}
"""Options of `winnow.replay_streams`, the twin of a replay of several streams."""

SAMPLES: dict[type[Kind], tuple[str, Any]] = {
    Whole: ("3", 3),
    Number: ("0.5", 0.5),
    Flag: ("", True),
    Names: ("a,b", ["a", "b"]),
    Items: ("count(*)", ["count(*)"]),
    Parameters: ("alpha=2", {"alpha": "2"}),
    ByStream: ("left=3,right=4", {"left": "3", "right": "4"}),
    ColumnByStream: ("left=3,right=4", {"left": "3", "right": "4"}),
    NamesByStream: ("left=a,right=b", {"left": "a", "right": "b"}),
    Numbers: ("1,2", [1, 2]),
    SplitKind: ("0.8", 0.8),
    BoundedKind: ("0.8", 0.8),
}
"""Of each kind: a value on the command line, and the same in a job file."""


def sample(option: Option) -> tuple[str, Any]:
    """Return a value of an option, on the command line and in a job file."""
    if option.choices:
        return option.choices[-1], option.choices[-1]
    if isinstance(option.kind, StorageOptions):
        return "region=eu", {"region": "eu"}
    if isinstance(option.kind, Pairs):
        return "a,b=c" if option.name == "profiles" else "a.b=c", (
            {"a,b": "c"} if option.name == "profiles" else {"a.b": "c"}
        )
    special = {"targets": "recall=0.5", "predicate": "equi:k"}
    if option.name in special:
        return special[option.name], special[option.name]
    return SAMPLES.get(type(option.kind), ("12", "12"))


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {toml(own)}' for name, own in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value) if isinstance(value, (int, float)) else f'"{value}"'


def words(option: Option) -> list[str]:
    shown = sample(option)[0]
    return [option.written] if isinstance(option.kind, Flag) else [f"{option.written}={shown}"]


def positional(command: Command) -> list[str]:
    """Return what must stand beside the options on the command line."""
    return ["x" for option in command.options.values() if option.positional]


def given(command: Command, line: list[str]) -> dict[str, Any]:
    own, values = parsed([command.name, *line], {command.name: command})
    return given_of(own, values)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parsed([name, "--help-all"], {name: COMMANDS[name]})
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for option in COMMANDS[name].options.values():
        assert option.positional or f"{option.written} " in shown
        assert " ".join(option.help.split()[:3]) in shown
        if option.choices:
            assert "{" + ",".join(option.choices) + "}" in shown


@pytest.mark.parametrize("name", WITH_JOB)
def test_a_job_file_says_what_the_command_line_says(name: str, tmp_path: Path) -> None:
    command, job = COMMANDS[name], tmp_path / "job.toml"
    for option in command.options.values():
        if option.name == "job":
            continue
        job.write_text(f"{option.toml} = {toml(sample(option)[1])}\n")
        told = given(command, ["--job", str(job)])
        assert told == given(command, words(option)), option.name
        assert option.name in told


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_named(name: str, tmp_path: Path) -> None:
    command = COMMANDS[name]
    known = max(command.options.values(), key=lambda option: len(option.toml))
    wrong = known.toml[:2] + known.toml[3:]
    rest = positional(command)
    with pytest.raises(SpecError, match=f"no option --{wrong.replace('_', '-')}.*{known.toml[:1]}"):
        parsed([name, *rest, f"--{wrong.replace('_', '-')}=1"], {name: command})
    if name in WITH_JOB:
        (tmp_path / "job.toml").write_text(f"{wrong} = 1\n")
        with pytest.raises(SpecError, match=f"unknown option '{wrong}'. Did you mean '.+'"):
            given(command, ["--job", str(tmp_path / "job.toml")])


CHECKED = [
    (name, option.name)
    for name, command in COMMANDS.items()
    for option in command.options.values()
    if not option.positional
    and (option.choices or isinstance(option.kind, (Whole, Number, Numbers, SplitKind)))
]


@pytest.mark.parametrize(("name", "keyword"), CHECKED)
def test_a_bad_value_is_named_at_every_interface(name: str, keyword: str) -> None:
    option = COMMANDS[name].options[keyword]
    rest = positional(COMMANDS[name])
    with pytest.raises(SpecError, match=f"^{option.written} is 'wrong'; (give|choose)"):
        given(COMMANDS[name], [*rest, f"{option.written}=wrong"])
    for twin in TWINS.get(name, ()):
        parameters = inspect.signature(twin).parameters
        if keyword in parameters:
            needed = {"streams": {}} if "streams" in parameters else {}
            with pytest.raises(SpecError, match=f"^{keyword} is 'wrong'; (give|choose)"):
                twin(*["x"] * (0 if needed else 2), **needed, **{keyword: "wrong"})


@pytest.mark.parametrize("name", TWINS)
def test_python_takes_the_same_options(name: str) -> None:
    wanted = {
        keyword: option.default
        for keyword, option in COMMANDS[name].options.items()
        if option.interface is not Interface.COMMAND_LINE and keyword not in ELSEWHERE
    }
    taken: dict[str, Any] = {}
    for twin in TWINS[name]:
        parameters = inspect.signature(twin).parameters
        taken |= {keyword: own.default for keyword, own in parameters.items()}
        for keyword in parameters:
            if keyword in wanted and parameters[keyword].kind is inspect.Parameter.KEYWORD_ONLY:
                assert f"\n{keyword}\n" in (twin.__doc__ or ""), keyword
        with pytest.raises(TypeError, match="unexpected keyword 'nope'"):
            twin(None, None, nope=1)
    assert wanted.keys() <= taken.keys()
    for keyword, default in wanted.items():
        assert taken[keyword] in (default, inspect.Parameter.empty), keyword


def test_explain_takes_no_keyword_that_it_has_no_option_for() -> None:
    with pytest.raises(TypeError, match="unexpected keyword 'importance'"):
        winnow.explain(rates=[1, 2], windows=[1, 2], distinct=[1, 2], importance="price")  # type: ignore[call-arg]


def test_estimate_lists_the_options_of_two_streams_and_of_several() -> None:
    listed = inspect.signature(winnow.estimate).parameters.keys() | {"executor", "progress"}
    for one in TWINS["estimate"]:
        own = inspect.signature(one).parameters.values()
        assert {each.name for each in own if each.kind is each.KEYWORD_ONLY} <= listed


@pytest.mark.parametrize("name", SPARK_TWINS)
def test_spark_takes_the_same_options(name: str) -> None:
    twin = SPARK_TWINS[name]
    parameters = inspect.signature(twin).parameters
    wanted = {
        keyword
        for keyword, option in COMMANDS[name].options.items()
        if option.interface is Interface.ANY and keyword not in ELSEWHERE
    }
    assert wanted <= parameters.keys() | {"fact_access"}
    with pytest.raises(TypeError, match="unexpected keyword 'nope'"):
        twin(None, None, nope=1)
    with pytest.raises(WinnowError, match=r"^columns is 'wrong'; choose one of all, ids"):
        twin(None, None, columns="wrong")


def declarations() -> list[tuple[str, str]]:
    """Return keyword and text of every declaration of an option in the packages."""
    found = []
    for path in (*(ROOT / "engine").rglob("*.py"), *(ROOT / "spark_plugin").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            found += [
                (node.target.id, ast.unparse(call))
                for call in ast.walk(node.annotation)
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Option"
            ]
    return found


def test_an_option_is_declared_once() -> None:
    again = [own for own, times in Counter(declarations()).items() if times > 1]
    assert not again
    parsers = [
        str(path.relative_to(ROOT))
        for path in (*(ROOT / "engine").rglob("*.py"), *(ROOT / "spark_plugin").rglob("*.py"))
        if ".add_argument(" in path.read_text()
    ]
    assert parsers == ["engine/commands/parser.py"]
