"""`winnow report`: the page of outputs that were written before, and what may be wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import golden_cases
import pyarrow.dataset as ds
import pytest
from golden_cases import PAIR, REPORTS, SEVERAL
from pages import checked

from engine.commands import main
from engine.jobs.sweep.report import TABLE
from engine.report.recording import NAME

CASES = {
    "replay": f"replay {PAIR} --window 20 --memory 16 --policy dgl --importance v",
    "exact": f"replay {PAIR} --window 20",
    "uncounted": f"replay {PAIR} --window 20 --memory 16 --reference none --policy prob",
    "bounded": f"replay {PAIR} --window 20 --memory 10% --policy simp --bound flow",
    "auto": f"replay {PAIR} --window 20 --memory 10% --policy auto",
    "star": REPORTS["replay_streams"].replace("{report}", ""),
    "sweep": f"sweep {PAIR} --windows 20 --memory 25%,50% --policies simp,prob --importance v"
    " --target recall=0.5 --target importance_recall=1 --bound flow",
    "bound": f"bound {PAIR} --window 20 --memory 10% --method flow",
    "sample": f"sample {PAIR} --window 20 --memory 40 --method bottom-k --aggregate count(*)"
    " --aggregate 'sum(left.v)~every~30' --aggregates-out {folder}/aggregates",
    "multijoin": f"multijoin {SEVERAL} --predicate equi:k --window 12 --engine local",
    "lookup": "lookup --stream {folder}/left.parquet --on k --time t --fact {folder}/fact.parquet"
    " --fact-on a",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reports")
    golden_cases.write_streams(made)
    return made


def words(line: str, folder: Path, *more: object) -> list[str]:
    """Return a command line; ~ stands for a space within a word."""
    given = golden_cases.words(line, folder, folder / "report.json")
    return [own.strip("'").replace("~", " ") for own in (*given, *map(str, more))]


@pytest.mark.parametrize("case", CASES)
def test_the_page_of_a_folder_is_that_of_its_run(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, first, again = tmp_path / "out", tmp_path / "first.html", tmp_path / "again.html"
    drawn, redrawn = tmp_path / "new" / "first.svg", tmp_path / "again.svg"
    asked = words(CASES[case], folder, "--out", out, "--html", first, "--plot", drawn)
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert main(["report", str(out), "--html", str(again), "--plot", str(redrawn)]) == 0
    assert again.read_bytes() == first.read_bytes()
    assert drawn.read_text().count('id="axes_') == first.read_text().count("<figure")
    assert _lines(redrawn) == _lines(drawn)
    assert capsys.readouterr().out == printed
    page = checked(first.read_text())
    assert page.tags["figure"] > 0
    assert "--html" not in " ".join(page.texts["span"])
    if case != "sweep":  # a sweep's folder has other files too
        rows = ds.dataset(out, format="parquet").count_rows()  # the record is no part of it
        assert rows > 0


def _lines(path: Path) -> list[str]:
    """Return the numbers of a drawing; names in it are made up anew each time."""
    return re.findall(r' d="[^"]*"', path.read_text())


@pytest.mark.parametrize("case", ["profile", "allocate", "estimate", "explain"])
def test_plots_of_commands_without_outputs(case: str, folder: Path, tmp_path: Path) -> None:
    plot = tmp_path / "plot.png"
    assert main(words(REPORTS[case], folder, "--plot", plot)) == 0
    assert plot.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize("case", ["replay", "sweep", "bound", "sample", "multijoin", "lookup"])
def test_a_plot_that_cannot_be_written_is_told_before_the_work(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    for name, said in (
        ("plot.pdf", "plot.pdf; give a file that ends in .png or .svg"),
        ("file/plot.svg", "plot.svg cannot be written"), ("folder.svg", "is a folder"),
    ):  # fmt: skip
        out = tmp_path / "out"
        assert main(words(CASES[case], folder, "--out", out, "--plot", tmp_path / name)) == 2
        assert said in " ".join(capsys.readouterr().err.split())
        assert not out.exists()


def test_the_command_on_a_page_is_what_was_asked(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    line = "explain --rates 10,1,1,3 --windows 100,100,100,100 --distinct 500,50,40,5 --top 2"
    assert main([*line.split(), "--html", str(page)]) == 0
    told = "".join(own for own in checked(page.read_text()).texts["span"] if own)
    assert told == f"winnow {line}".replace(" --", "--")


def test_aggregates_that_are_gone_are_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = CASES["sample"].split(" --aggregates-out")[0]
    assert main(words(line, folder, "--out", tmp_path / "out")) == 0
    assert "every 30" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "aggregates are left out" in said.err
    assert "outputs" in said.out


@pytest.mark.parametrize(("case", "damage"), [("lookup", "number"), ("sweep", "table")])
def test_a_damaged_report_is_told(
    case: str, damage: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(words(CASES[case], folder, "--out", out)) == 0
    if damage == "table":
        (out / TABLE).write_bytes(b"")
    else:
        record = json.loads((out / NAME).read_text())
        record["report"]["rows_per_second"] = "many"
        (out / NAME).write_text(json.dumps(record))
    assert main(["report", str(out)]) == 2
    assert "is damaged, or of another version of winnow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "which holds its report: give the folder"),
        ("{", "cannot be read"),
        ("[]", "cannot be read: it is no report of winnow, or damaged"),
        ("{}", "cannot be read: it is no report of winnow, or damaged"),
        ('{"task": "nothing", "report": {}, "request": null}', "of 'nothing', which this version"),
        ('{"task": "replay", "report": {}, "request": null}', "is damaged, or of another version"),
        ('{"task": "sweep", "report": {"advice": []}, "request": null}', "is damaged"),
    ],
)
def test_a_folder_without_a_report_is_told(
    content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / NAME).write_text(content)
    assert main(["report", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("winnow report: error: ")
    assert not (tmp_path / "page.html").exists()


def test_what_is_no_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "is no folder of outputs: give the folder that --out" in capsys.readouterr().err


def test_a_page_without_a_place_stops_before_the_work(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(CASES["replay"], folder, "--html", tmp_path, "--out", tmp_path / "o")) == 2
    assert f"HTML report {tmp_path} is a folder: name a file" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_a_record_is_beside_outputs_alone(folder: Path, tmp_path: Path) -> None:
    assert main(words(CASES["lookup"], folder)) == 0
    assert main(words(CASES["lookup"], folder, "--out", tmp_path / "out")) == 0
    kept = json.loads((tmp_path / "out" / NAME).read_text())
    assert (kept["task"], kept["report"]["out"]) == ("lookup", str(tmp_path / "out"))
    assert kept["request"]["options"][0] == [
        "--stream", f"{folder}/left.parquet", "archive of the stream: file, folder, glob or URI"
    ]  # fmt: skip
