"""What the documents show is what happens: commands, outputs, tables, options, fields, examples."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from documented import command_of, documented_options, fields, flags_of, named_in, taken
from places import DATA, ROOT, SUPPORT
from thorough import guarded

import winnow
from engine import commands as cli
from engine.commands.parser import given_of
from engine.jobs.sweep.rows import ESTIMATES, SCHEMA
from engine.options import allocate
from engine.options.command import Group
from engine.options.option import Option
from engine.options.replay import FACT, JOIN, STREAMS, WHERE, job_of
from engine.options.streams import Memory, Probe
from engine.options.sweep import sweep_of

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("engine", "gpu_kernels", "spark_plugin")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.stem != "__main__"
]
BLOCK = re.compile(r"^(?:<!-- (\w+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its mark, and text.

    Marks are run; real, of archives that not all have; first, of the README; and output.
    """

    mark: str
    language: str
    text: str


def blocks(path: Path) -> list[Block]:
    return [Block(*match.groups(default="")) for match in BLOCK.finditer(path.read_text())]


def marked(mark: str) -> list[Path]:
    return [path for path in DOCUMENTS if any(block.mark == mark for block in blocks(path))]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_timings(text: str) -> list[str]:
    """Return the lines of an output that do not depend on the machine."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    ends = [i for i, line in enumerate(lines) if line.startswith("seconds:")]
    return lines[: ends[0]] if ends else lines


def environment(folder: Path) -> dict[str, str]:
    """Return that of a person who has the environment active, in a terminal of 80 columns."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"PATH": path, "COLUMNS": "80", "PYTHONPATH": str(folder), "WINNOW_DATA": str(DATA)}
    return os.environ | own


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the socket of a Python that has loaded winnow, beside a `winnow` that asks it."""
    folder = tmp_path_factory.mktemp("warm")
    place, script = folder / "socket", folder / "winnow"
    python = [sys.executable, "-S", "-E", str(SUPPORT / "warm.py"), str(place)]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(python)} winnow "$@"\n')
    script.chmod(0o755)
    serving = [sys.executable, *python[3:]]
    with subprocess.Popen(serving, stdin=subprocess.PIPE) as server:  # noqa: S603 - ours
        while not place.exists():
            assert server.poll() is None
            time.sleep(0.02)
        yield place


def run(block: Block, folder: Path, warm: Path | None) -> str:
    """Run a block and return its standard output; `winnow` runs on threads, which start faster.

    In processes of its own, or in those that are forked from one that has loaded winnow.
    """
    own = environment(folder)
    if block.language == "sh":
        commands = r"winnow (replay|prepare|sample|estimate|sweep|bound|allocate|multijoin|profile)"
        text = re.sub(commands, r"winnow \1 --engine local", block.text)
        command = ["bash", "-euo", "pipefail", "-c", text]
        own["PATH"] = f"{warm.parent}{os.pathsep}{own['PATH']}" if warm else own["PATH"]
    elif warm:
        asking = ["-S", "-E", str(SUPPORT / "warm.py"), str(warm), "python", block.text]
        command = [sys.executable, *asking]
    else:
        command = [sys.executable, "-W", "ignore", "-c", block.text]
    done = subprocess.run(  # noqa: S603 - of our own documents
        command, cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_first_screen_runs_on_what_it_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("views", "clicks"):
        at = pa.array(np.sort(rng.integers(0, 7200, 500)) * 1_000_000, pa.timestamp("us"))
        own = pa.table({"at": at, "item": rng.integers(0, 20, 500)})
        pq.write_table(own, tmp_path / f"{name}.parquet")
    command, script = [own for own in blocks(ROOT / "README.md") if own.mark == "first"]
    assert "recall" in run(command, tmp_path, None)
    frames = (
        "import pandas as pd\n"
        "views, clicks = (pd.read_parquet(f'{own}.parquet') for own in ('views', 'clicks'))\n"
    )
    told = frames + script.text + "print(found.outputs.num_rows, found.report.recall)"
    rows, recall = run(script._replace(text=told), tmp_path, None).split()
    assert int(rows) > 0
    assert 0 < float(recall) < 1


LONG = [
    ROOT / "docs" / f"{page}.md"
    for page in ("allocate", "bound", "profile", "star_streams", "sweep")
]
"""Pages whose examples take longest."""


@pytest.mark.parametrize(
    "path",
    [
        *(path for path in marked("run") if path not in LONG),
        *guarded(LONG, "docs", "engine", "tests/docs/test_docs.py"),
    ],
    ids=named,
)
def test_blocks_do_what_the_document_says(path: Path, tmp_path: Path, warm: Path) -> None:
    """Those of the README in processes of their own, as a person's."""
    shown: str | None = ""
    for block in blocks(path):
        if block.mark == "real" and not DATA.is_dir():
            shown = None
        elif block.mark in ("run", "real"):
            shown = run(block, tmp_path, None if path.name == "README.md" else warm)
        elif block.mark == "output" and shown is not None:
            wanted, found = without_timings(block.text), without_timings(shown)
            assert found[-len(wanted) :] == wanted


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_marks_and_links_lead_somewhere(path: Path) -> None:
    assert {block.mark for block in blocks(path)} <= {"", "first", "run", "real", "output"}
    prose = BLOCK.sub("", path.read_text())
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        assert link.startswith("https://") or (path.parent / link).exists(), link


def test_every_option_is_documented_and_none_besides() -> None:
    fact = FACT.options.values()  # explained on a page of its own
    assert set(documented_options("facts")) == {option.written for option in fact}
    assert set(documented_options("replay")) == flags_of("replay", (FACT,))
    for command in ("lookup", "multijoin", "explain", "allocate"):
        assert set(documented_options(command)) == flags_of(command)
    shared = STREAMS, WHERE, FACT  # explained on the page of replay
    assert set(documented_options("sweep")) == flags_of("sweep", shared)
    budget = Group("", (Memory, Probe))
    for command in ("profile", "estimate"):
        assert set(documented_options(command)) == flags_of(command, (*shared, JOIN))
    for command in ("bound", "sample"):
        assert set(documented_options(command)) == flags_of(command, (*shared, JOIN, budget))
    assert set(documented_options("size")) == flags_of("size")


@pytest.mark.parametrize(
    "command",
    [
        "replay", "sample", "sweep", "bound", "lookup", "multijoin", "explain", "profile",
        "allocate", "size", "estimate",
    ],
)  # fmt: skip
def test_every_documented_example_is_taken(command: str) -> None:
    named = {"allocate": ["jobs.toml"], "size": ["--profile=p.json"]}.get(command, [])
    for option, example in documented_options(command).items():
        words = shlex.split(example)
        assert words[0] == option
        taken(command, [*words, *named])


@pytest.mark.parametrize("command", ["replay", "sweep"])
def test_the_job_file_shown_means_the_options_shown(tmp_path: Path, command: str) -> None:
    shown = [b.text for b in blocks(ROOT / "docs" / f"{command}.md") if b.language == "toml"]
    for text in shown:
        (tmp_path / "job.toml").write_text(text)
        given = given_of(command_of(command), {"job": tmp_path / "job.toml"})
        sweep_of(given) if command == "sweep" else job_of(given)
    assert shown


OPEN = (
    "seconds", "versions", "policy.parameters", "grid.policies",
    "advice[].best", "advice[].below", "advice[].nearest", "advice[].policies",
)  # fmt: skip
"""Fields whose own fields depend on the run."""


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        (
            "report",
            (
                "replay --window 20 --memory 40 --bound --policy age --lanes 2;"
                "replay --window 20 --memory 40 --lanes 2"
            ),
        ),
        ("bound", "bound --window 20 --memory 4"),
        ("sample", "sample --window 20 --memory 4 --aggregate count(*)"),
        (
            "estimate",
            (
                "estimate --window 2 --aggregate count;"
                "estimate --window 2 --memory 4 --policy prob --read 40%;"
                "estimate --window 2 of text;"
                "estimate --window 2 of lanes"
            ),
        ),
        ("sweep", "sweep --windows 20 --memory 4,8 --policies dgl --target recall=0.1"),
    ],
)
def test_every_field_of_the_report_is_documented_and_none_besides(
    tmp_path: Path, page: str, commands: str
) -> None:
    streams, report = tmp_path / "streams", tmp_path / "report.json"
    line = f"generate zipf --rows 500 --domain 9 --seed 1 --out {streams}"
    assert cli.main(line.split()) == 0
    for side in ("left", "right"):  # so that a part of them can be read
        table = pq.read_table(streams / f"{side}.parquet")
        pq.write_table(table, streams / f"{side}.parquet", row_group_size=20)
    found = set()
    for command in commands.split(";"):
        words, _, kind = command.partition(" of ")
        ending = "csv" if kind else "parquet"
        if kind:
            for side in ("left", "right"):
                table = pq.read_table(streams / f"{side}.parquet")
                pa_csv.write_csv(table, streams / f"{side}.csv")
        told = (
            f"--left {streams}/left.{ending} --right {streams}/right.{ending} --on key "
            f"--time ts --engine local --cache {tmp_path}/lanes"
        ).split()
        if kind == "lanes":
            assert cli.main(["prepare", *told]) == 0
        more = f"--time-unit s --report {report}"
        assert cli.main([*words.split(), *told, *more.split()]) == 0
        for name in fields(json.loads(report.read_text())):
            parents = [own for own in OPEN if name.startswith(own + ".")]
            found.add(parents[0] if parents else name)
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert named_in(text.split("## The report\n")[-1]) == found


def test_every_field_of_a_profile_is_documented_and_none_besides(tmp_path: Path) -> None:
    streams, file = tmp_path / "streams", tmp_path / "profile.json"
    assert cli.main(f"generate zipf --rows 500 --domain 9 --seed 1 --out {streams}".split()) == 0
    command = (
        f"profile --left {streams}/left.parquet --right {streams}/right.parquet --on key --time ts "
        f"--window 20 --monitor 9 --retain 0.5 --engine local --cache {tmp_path}/lanes --out {file}"
    )
    assert cli.main(command.split()) == 0
    found = set()
    for name in fields(json.loads(file.read_text())):
        own = re.sub(r"\b(left|right)\b", "SIDE", name)
        found.add(re.sub(r"(within|top_share|window\.SIDE)\.[\d%]+$", r"\1", own))
    text = (ROOT / "docs" / "profile.md").read_text()
    assert named_in(text.split("## The file\n")[-1]) == found


def test_every_field_of_a_size_is_documented_and_none_besides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.csv").write_text("k,t\n1,1\n1,2\n1,4\n2,9\n")
    command = f"profile --engine local --on k --time t --window 5 --out {tmp_path}/p.json"
    words = [f"--{side}={tmp_path}/s.csv" for side in ("left", "right")]
    assert cli.main([*command.split(), *words, f"--cache={tmp_path}/lanes"]) == 0
    capsys.readouterr()
    command = f"size --profile {tmp_path}/p.json --gpu-memory 80 --format json"
    assert cli.main(command.split()) == 0
    found = {
        "settings" if name.startswith("settings.") else name
        for name in fields(json.loads(capsys.readouterr().out))
    }
    text = (ROOT / "docs" / "size.md").read_text()
    section = text.split("## What is held\n")[1].split("\n## ")[0]
    assert named_in(section) == found


def test_every_field_of_a_look_up_is_documented_and_none_besides(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,t\n1,1\n")
    command = f"lookup --stream {tmp_path}/s.csv --on k --time t --fact {tmp_path}/s.csv"
    assert cli.main([*command.split(), "--report", str(tmp_path / "report.json")]) == 0
    names = fields(json.loads((tmp_path / "report.json").read_text()))
    found = {name if not name.startswith(OPEN) else name.split(".")[0] for name in names}
    text = (ROOT / "docs" / "lookup.md").read_text()
    assert named_in(text.split("## The report\n")[-1]) == found


def test_every_field_of_a_fact_relation_is_documented_and_none_besides(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,t\n1,1\n")
    command = f"replay --engine local --on k --time t --window 1 --report {tmp_path}/report.json"
    command += f" --fact-left k --fact-right k --cache {tmp_path}/lanes"
    words = [f"--{name}={tmp_path}/s.csv" for name in ("left", "right", "fact")]
    assert cli.main([*command.split(), *words]) == 0
    found = {n for n in fields(json.loads((tmp_path / "report.json").read_text())) if "fact" in n}
    text = (ROOT / "docs" / "facts.md").read_text()
    assert named_in(text.split("## The report\n")[-1]) == found


def test_every_field_of_an_allocation_is_documented_and_none_besides(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,t\n1,1\n1,2\n1,4\n2,9\n")
    archive = {side: str(tmp_path / "s.csv") for side in ("left", "right")}
    jobs = {"memory": 4, "join": [archive | {"on": "k", "time": "t", "window": 5}]}
    found = set()
    for metric in ("recall", "error"):
        report = winnow.allocate(jobs | {"metric": metric}, cache=tmp_path / "lanes").report
        for name in fields(report):
            parents = [own for own in (*OPEN, "joins[].expected") if name.startswith(own + ".")]
            found.add(parents[0] if parents else name)
    text = (ROOT / "docs" / "allocate.md").read_text()
    assert named_in(text.split("## The report\n")[-1]) == found


def test_the_jobs_are_documented_and_nothing_besides() -> None:
    text = (ROOT / "docs" / "allocate.md").read_text().split("## The jobs\n")[1].split("\n## ")[0]
    named = {name.removeprefix("[join.").removesuffix("]") for name in named_in(text)}
    assert named == {*allocate.JOIN.options, "memory", "metric", "refine"}


def test_every_field_of_a_multi_way_join_is_documented_and_none_besides(tmp_path: Path) -> None:
    rows = "".join(f"{k},2024-05-01 00:00:0{t}\n" for k, t in ((1, 1), (1, 2), (1, 4), (2, 9)))
    (tmp_path / "s.csv").write_text(f"k,t\n{rows}")
    command = "multijoin --engine local --predicate equi:k --time t --window 5s"
    words = [*command.split(), *(f"--stream={name}={tmp_path}/s.csv" for name in ("a", "b"))]
    shed = "--capacity 1 --basic-window 1s --adapt-every 2s --shred 1"
    found = set()
    within = "--memory 2 --policy prob --bound"
    lanes = [f"{own} --partition-by k" for own in (shed, within)]
    for more in ("", "--method lazy-nlj --tau 2s", shed, within, *lanes):
        report = tmp_path / "report.json"
        assert cli.main([*words, *more.split(), "--report", str(report)]) == 0
        for name in fields(json.loads(report.read_text())):
            parents = [own for own in OPEN if name.startswith(own + ".")]
            found.add(re.sub(r"\.[ab]$", ".NAME", parents[0] if parents else name))
    whole = ["harvest.settings", "memory", "peak_memory", "exact_memory", "bound"]
    whole += [f"lanes.by_lane[].{own}" for own in ("joined", "memory")]
    found = {next((w for w in whole if n.startswith(w + ".")), n) for n in found}
    pages = [(ROOT / "docs" / f"{page}.md").read_text() for page in ("multijoin", "harvest")]
    assert named_in("".join(text.split("## The report\n")[-1] for text in pages)) == found


def test_every_column_of_a_sweep_is_documented_and_none_besides() -> None:
    text = (ROOT / "docs" / "sweep.md").read_text()
    section = text.split("## The table\n")[1].split("## The report\n")[0]
    assert named_in(section) == set(SCHEMA.names)
    section = text.split("The table has further columns:\n")[1].split("## The grid\n")[0]
    assert set(ESTIMATES) <= set(re.findall(r"`(\w+)`", section))


def tables() -> ModuleType:
    path = ROOT / "docs" / "tables.py"
    spec = importlib.util.spec_from_file_location("tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_fresh() -> None:
    stale = [named(path) for path in tables().stale()]
    assert not stale, f"{', '.join(stale)}: run make docs"


def test_options_are_listed_as_parameters_and_errors_as_raised() -> None:
    for part in tables().reference().split("\n## ")[1:]:
        _, _, raised = part.partition("**Raises**\n\n")
        names = re.findall(r"^- (.*?)(?::|$)", raised.partition("\n\n")[0], re.MULTILINE)
        assert all(name.endswith("Error`") for name in names), part.partition("\n")[0]


def test_a_wrapped_line_of_the_reference_goes_on_after_code() -> None:
    assert " `predicate` is text or a `Predicate`;" in tables().reference()


def test_a_page_gets_a_row_for_a_new_option_and_loses_those_of_old_ones() -> None:
    page = (ROOT / "docs" / "allocate.md").read_text()
    options = dict(command_of("allocate").options)
    new = {"device": Option("what computes", choices=("cpu", "gpu"), default="cpu", name="device")}
    gone = {"--cache", "jobs"}  # the latter is positional
    wanted = {own.written: own for own in (options | new).values() if own.written not in gone}
    found = tables().with_options(page, wanted).splitlines()
    row = "| `--device` | what computes | `cpu` | `--device gpu` |"
    assert set(found) - set(page.splitlines()) == {row}
    assert set(page.splitlines()) - set(found) == {
        line for line in page.splitlines() if line.startswith("| `--cache` |")
    }
    assert found[found.index(row) - 1].startswith("| `--plots` |")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    with warnings.catch_warnings():
        # Spark remarks on the version of pandas when it is imported.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
