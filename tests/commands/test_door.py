"""What a newcomer tries first: versions, help, misspelt names, and names that are alike."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT

import winnow
from engine.commands import main
from engine.commands.line import all_commands
from engine.commands.parser import given_of, parsed
from engine.options.meanings import MEANINGS
from engine.runtime.errors import SpecError


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    rows = {"ts": range(40), "key": [i % 4 for i in range(40)]}
    for side in ("left", "right"):
        pq.write_table(pa.table(rows), tmp_path / f"{side}.parquet")
    names = (f"--{side}={tmp_path}/{side}.parquet" for side in ("left", "right"))
    return [*names, "--on=key", "--time=ts", "--engine=local", f"--cache={tmp_path}/lanes"]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"winnow {metadata.version('winnowjoin')}\n"


def test_help_lists_the_commands_without_loading_them() -> None:
    program = (
        "import sys\nfrom engine.commands import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n    print(*(name for name in sys.modules if name.partition('.')[0] in "
        "{'numba', 'numpy', 'pandas', 'pyarrow', 'rich', 'pyspark'}), file=sys.stderr)\n"
    )
    shown = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not shown.stderr.strip()
    found = " ".join(shown.stdout.split())
    for name, meaning in MEANINGS.items():
        assert f" {name} {meaning} " in found


def test_the_table_of_meanings_is_that_of_the_commands() -> None:
    for name, meaning in MEANINGS.items():
        command = all_commands()[name].COMMAND
        assert (command.name, command.meaning) == (name, meaning)


@pytest.mark.parametrize("name", sorted(all_commands()))
def test_every_help_ends_with_an_example_that_can_be_read(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = all_commands()[name].COMMAND
    for one in (command, *command.kinds):
        words = shlex.split(one.example.replace("\\\n", " "))
        assert words[:2] == ["winnow", name]
        given_of(*parsed(words[1:], {name: command}))
        with pytest.raises(SystemExit):
            main([*([name] if one is command else [name, one.name]), "--help"])
        assert f"example:\n  {one.example.splitlines()[0]}" in capsys.readouterr().out


def test_help_shows_the_common_options_and_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    with_common = 0
    for name, module in all_commands().items():
        command = module.COMMAND
        shown = {}
        for which in ("--help", "--help-all"):
            with pytest.raises(SystemExit) as end:
                main([name, which])
            assert end.value.code == 0
            shown[which] = capsys.readouterr().out
        written = {option.written for option in command.options.values() if not option.positional}
        assert written <= set(re.findall(r"--[a-z-]+", shown["--help"]))
        explained = re.findall(r"^  (--[a-z-]+)", shown["--help"], re.MULTILINE)
        every = re.findall(r"^  (--[a-z-]+)", shown["--help-all"], re.MULTILINE)
        assert written <= set(every)
        if command.common:
            with_common += 1
            common = [command.options[own].written for own in command.common.split()]
            assert len(common) == 10
            assert explained == [*common, "--help-all"]
        else:
            assert len(written) < 25
            assert explained == every
    assert with_common > 8


def test_help_names_the_papers_that_it_cites(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["multijoin", "--help-all"], ["explain", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "P3: Golab, Özsu" in capsys.readouterr().out
    assert main(["policies"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{paper}: " in shown for paper in ("P1", "P2", "P5"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("generate", "its kind is missing; write winnow generate and one of zipf, age, gaussian"),
        (
            "generate zipff",
            "there is no 'zipff'; choose one of zipf, age, gaussian. Did you mean 'zipf'?",
        ),
        (
            "explain --rates -1,1",
            "--rates has no value: give one; if it begins with -, write --rates=VALUE",
        ),
        ("explain --measure=3", "--measure takes no value: leave out ='3'"),
        ("completion", "one of bash, zsh, fish is missing"),
        ("report", "PATH is missing: give it (folder of outputs that a command has written)"),
        ("explain", "--rates is missing: give it (tuples per unit time)"),
        ("generate zipf --domain 5", "--rows is missing: give it (tuples of the left stream)"),
        (
            "replay --memory 10 %",
            "'%' belongs to no option: write the option before it, or quote a value with blanks",
        ),
        (
            "allocate no.toml",
            "job file no.toml cannot be read (No such file or directory): give a TOML file",
        ),
        ("warm --only ,", "--only is ',', which names nothing: give a name, or several"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_in_a_line(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = words.partition(" ")[0]
    assert main(words.split()) == 2
    more = "" if " " in words else f"; winnow {command} --help has an example"
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"winnow {command}: error: {told}{more}\n")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        with (folder / shell).open("w") as file, redirect_stdout(file):
            assert main(["completion", shell]) == 0
    return folder


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["repl"], {"replay"}),
        (["replay", "--memo"], {"--memory", "--memory-left", "--memory-right"}),
        (["replay", "--policy", "di"], {"dimpprob"}),
        (["replay", "--engine", ""], {"auto", "local", "spark"}),
        (["replay", "--left", ""], set()),  # the shell's own: files
        (["replay", "--rapids", "--est"], {"--estimator"}),
        (["generate", "z"], {"zipf"}),
        (["generate", "--r"], set()),
        (["generate", "zipf", "--sk"], {"--skew-left", "--skew-right"}),
        (["generate", "gaussian", "--sk"], set()),
        (["generate", "age", "--importance", "ra"], {"rare-high"}),
        (["completion", "b"], {"bash"}),
        (["replay", "--policy", "=", "di"], {"dimpprob"}),
        (["replay", "--engine", "="], {"auto", "local", "spark"}),
        (["replay", "--engine=local", "--memo"], {"--memory", "--memory-left", "--memory-right"}),
        (["report", ""], set()),  # the shell's own: folders
        (["report", "--ht"], {"--html"}),
    ],
)
def test_bash_completes(scripts: Path, words: list[str], found: set[str]) -> None:
    line = " ".join(map(shlex.quote, ["winnow", *words]))
    program = (
        f"source {scripts / 'bash'}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _winnow; "
        'echo "${COMPREPLY[@]}"'
    )
    shown = subprocess.run(  # noqa: S603 - ours
        ["/bin/bash", "-c", program], capture_output=True, text=True, check=True
    )
    assert (set(shown.stdout.split()), shown.stderr) == (found, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command_and_option(scripts: Path, shell: str) -> None:
    script = (scripts / shell).read_text()
    for name, module in all_commands().items():
        assert name in script
        for option in module.COMMAND.options.values():
            if not option.positional:
                form = (
                    rf"'\*{option.written}=?\[" if shell == "zsh" else f" -l {option.written[2:]} "
                )
                assert re.search(form, script)
            assert all(value in script for value in option.choices)
    program = shutil.which(shell)
    if program is not None:
        check = subprocess.run(  # noqa: S603 - ours
            [program, "-n", scripts / shell], capture_output=True, text=True, check=True
        )
        assert not check.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("winnow generate ", {"zipf", "age", "gaussian"}),
        ("winnow generate zipf --sk", {"--skew-left", "--skew-right"}),
        ("winnow generate gaussian --sk", set()),
        ("winnow warm --only replay --o", {"--only", "--out"}),
        ("winnow replay --left=a --policy d", {"dgl", "dimpprob"}),
    ],
)
def test_fish_completes(scripts: Path, line: str, found: set[str]) -> None:
    program = f"source {scripts / 'fish'}; complete -C {shlex.quote(line)}"
    shown = subprocess.run(  # noqa: S603 - ours
        [shutil.which("fish") or "", "--no-config", "-c", program],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {row.split("\t")[0] for row in shown.stdout.splitlines()} == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replai"], "there is no command 'replai'. Did you mean 'replay'?"),
        (["nothing-like-it"], "There are replay, sweep,"),
        (["replay", "--polcy", "dgl"], "there is no option --polcy. Did you mean --policy?"),
        (["replay", "--imp", "v"], "there is no option --imp. Did you mean --importance?"),
        (["replay", "--memor=10%"], "there is no option --memor. Did you mean --memory?"),
        (["multijoin", "--pred", "equi:k"], "there is no option --pred. Did you mean --predicate?"),
        (["estimate", "--error", "0"], "there is no option --error: --help-all lists"),
        (
            ["replay", "--target=1"],
            "there is no option --target: it is one of winnow sweep; --help",
        ),
        (
            ["allocate", "x.toml", "--memory=5%"],
            "there is no option --memory: write it into the TOML file",
        ),
        (["multijoin", "--on=k"], "there is no option --on: name the column in the predicate"),
        (["-V"], "there is no option -V. Did you mean --version?"),
        (["--verson"], "there is no option --verson. Did you mean --version?"),
        (["sweep", "--memory-left=3"], "there is no option --memory-left: give memory"),
        (
            ["--left", "a", "replay"],
            "--left stands before the command: write winnow COMMAND --left",
        ),
    ],
)
def test_a_name_that_is_no_name_is_told_with_the_next(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


ALIKE = (
    ("window", "windows", "7,9"), ("policy", "policies", "prob,dgl"), ("seed", "seeds", "1,2"),
    ("split", "splits", "even,0.8"), ("estimator", "estimators", "memory,history"),
)  # fmt: skip


@pytest.mark.parametrize(("one", "several", "value"), ALIKE)
def test_a_sweep_takes_the_names_of_a_replay(
    one: str, several: str, value: str, tmp_path: Path
) -> None:
    command = all_commands()["sweep"].COMMAND
    wanted = given_of(*parsed(["sweep", f"--{several}", value], {"sweep": command}))
    assert wanted[several] == value
    assert given_of(*parsed(["sweep", f"--{one}", value], {"sweep": command})) == wanted
    job = tmp_path / "job.toml"
    job.write_text(f'{one} = "{value}"\n')
    read = given_of(*parsed(["sweep", "--job", str(job)], {"sweep": command}))
    assert {name: own for name, own in read.items() if name != "job"} == wanted
    job.write_text(f'{one} = "{value}"\n{several} = "{value}"\n')
    with pytest.raises(SpecError, match="is given twice, under two names"):
        given_of(*parsed(["sweep", "--job", str(job)], {"sweep": command}))
    with pytest.raises(TypeError, match=f"{one} is another name of {several}"):
        winnow.sweep("a", "b", **{one: value, several: value})


def test_a_sweep_of_python_takes_them_too() -> None:
    table = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"]})
    found = [
        winnow.sweep(table, table, on="key", time="t", memory=2, policies="prob", **own)
        for own in ({"window": 2}, {"windows": 2})
    ]
    one, other = (own.outputs.drop(["seconds", "tuples_per_second"]).to_pylist() for own in found)
    assert one == other
    assert one[0]["window_left"] == 2


@pytest.mark.parametrize("words", ["cache", "policies"])
def test_output_that_nobody_reads_is_no_error(tmp_path: Path, words: str) -> None:
    lanes = tmp_path / "winnow" / "lanes" / "some"
    lanes.mkdir(parents=True)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "winnow", words], stdout=writer, stderr=subprocess.PIPE,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)}, check=False, text=True,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_cache_is_listed_unless_it_is_cleaned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", f"--cache={tmp_path}"]) == 0
    assert capsys.readouterr().out == f"0 bytes in {tmp_path}\n"


@pytest.mark.parametrize("written", ["bottom-k", "bottom_k", "Bottom_K"])
def test_a_sample_is_spelled_either_way_and_printed_one(
    written: str, pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    words = [*pair, "--window=5", "--memory=8", f"--report={report}"]
    assert main(["sample", *words, f"--method={written}"]) == 0
    assert json.loads(report.read_text())["method"]["name"] == "bottom-k"
    assert main(["sweep", *words, f"--policies={written}"]) == 0
    assert [*json.loads(report.read_text())["grid"]["policies"]] == ["bottom-k"]
    assert "bottom_k" not in capsys.readouterr().out


def test_a_profile_replaces_no_file(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "profile.json"
    place.write_text("mine")
    assert main(["profile", *pair, "--window=5", f"--out={place}"]) == 2
    assert f"profile {place} exists: remove it or name another file" in capsys.readouterr().err
    assert place.read_text() == "mine"


def test_a_command_loads_neither_pandas_nor_linear_algebra_and_both_still_work(
    pair: list[str],
) -> None:
    program = (
        "import sys\nfrom engine.commands import main\n"
        "assert main() in (0, None)\n"
        "print(*({'pandas', 'scipy.linalg', 'numba'} & {*sys.modules}))\n"
        "import numba, numpy as np, pyarrow as pa\n"
        "dot = numba.njit(lambda a: np.dot(a, a))\n"
        "print(dot(np.array([[2.0, 0.0], [0.0, 2.0]])).sum())\n"
        "frame = pa.table({'k': [1, None], 's': ['x', 'y']}).to_pandas()\n"
        "print(pa.Table.from_pandas(frame.astype({'s': 'category'})).schema.field('s').type)\n"
    )
    words = ["replay", *pair, "--window=5", "--memory=4", "--policy=prob"]
    shown = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False,
        cwd=ROOT, env=os.environ | {"WINNOW_COMPILE": "always"},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    numba, dot, kind = shown.stdout.splitlines()[-3:]
    assert (numba, dot) == ("numba", "8.0")
    assert kind.startswith("dictionary")
