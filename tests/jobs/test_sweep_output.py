"""A sweep from end to end: the command line, its files, Python's functions and errors."""

from __future__ import annotations

import csv
import datetime as dt
import json
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import table
from options_given import line_of
from sweep_cases import COMMON, FIGURES, alone, drifting, swept

import winnow
from engine.commands import main
from engine.jobs.sweep import plots
from engine.jobs.sweep import report as report_module
from engine.jobs.sweep.rows import SCHEMA
from engine.jobs.sweep.run import SweepResult
from engine.policies import POLICIES, SAMPLING
from engine.report.charts import Lines, Series
from engine.report.figures import figure_of
from engine.runtime import device_choice as attempt
from engine.runtime.errors import DeviceError, InputError, OutputError
from engine.runtime.warned import WinnowWarning
from gpu_kernels.devices import Choice

MEASURES = ("recall", "importance_recall", "peak_memory", "seconds")
FILES = {"_SUCCESS", "_report.json", "sweep.parquet", "sweep.csv", "sweep.json"} | {
    f"{measure}.{kind}" for measure in MEASURES for kind in ("png", "svg")
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return drifting(tmp_path)


def words(folder: Path, **options: Any) -> list[str]:
    told = {
        "engine": "local", "left": folder / "left.parquet", "right": folder / "right.parquet",
        "on": "k", "time": "t", "importance": "i", "cache": folder / "cache", "windows": 9,
        "memory": "10%:100%:30%", "policies": "dgl,rand,simp", "out": folder / "out",
    } | options  # fmt: skip
    return line_of("sweep", told)


def test_the_command_line_writes_everything(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = words(
        folder,
        windows="3,9",
        seeds="0:2",
        target=["importance_recall=0.6", "recall=100%"],
        report=folder / "report.json",
    )
    assert main(told) == 0
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == FILES
    written = pq.read_table(out / "sweep.parquet")
    assert written.schema.equals(SCHEMA)
    assert written.num_rows == 2 * (4 + 4 + 3 * 4)
    for line in written.to_pylist()[::7]:
        assert {name: line[name] for name in FIGURES} == alone(folder, line, {})
        assert line["seconds"] > 0
        assert line["tuples_per_second"] == pytest.approx(800 / line["seconds"])
    with (out / "sweep.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["policy"] for line in lines] == written["policy"].to_pylist()
    assert [float(line["recall"]) for line in lines] == written["recall"].to_pylist()
    assert [line["seed"] for line in lines][:6] == ["", "", "", "", "0", "1"]
    shown = capsys.readouterr().out
    assert "cheapest" in shown
    assert "output:" in shown
    check_report(json.loads((out / "sweep.json").read_text()), folder)


def check_report(report: dict[str, Any], folder: Path) -> None:
    assert report["grid"]["windows"] == [3, 9]
    assert report["grid"]["seeds"] == [0, 1, 2]
    assert report["grid"]["cells"] == 40
    assert report["device"]["used"] in {"cpu", "gpu"}
    assert report["device"]["reason"]
    assert len(report["advice"]) == 4
    assert report["advice"][0]["best"]["policy"] in {"dgl", "simp", "rand"}
    assert report["advice"][1]["best"]["memory"] == "100%"
    assert set(report["seconds"]) == {"prepare", "profile", "replay", "check"} | (
        set(report["seconds"]) & {"write"}
    )
    again = json.loads((folder / "report.json").read_text())
    assert again["advice"] == report["advice"]
    assert "write" in again["seconds"]


def test_labels_and_lines_fit_their_panels(folder: Path) -> None:
    rows, advice, grid = drawn(folder, out=folder / "out")
    low = [own._replace(recall=0.1) if own.window_left == 3 else own for own in rows]
    for measure in plots.MEASURES:
        lines = Lines("t", "x", measure.label, [1, 2], [Series("a", [1.0, 2.0])])
        swept_ways = [plots.figure_of(own, advice, grid, measure) for own in (rows, low)]
        for figure in (*swept_ways, figure_of([lines, lines])):
            figure.canvas.draw()
            for axis in figure.axes:
                written = axis.yaxis.label.get_window_extent().height
                assert written <= axis.get_window_extent().height
                assert axis.get_ylim()[0] == 0.0
                assert axis.get_ylim()[1] >= axis.dataLim.ymax - 1e-9


def test_plots_are_pictures_of_the_measures(folder: Path) -> None:
    rows, advice, grid = drawn(folder, out=folder / "out")
    for measure in MEASURES:
        png = (folder / "out" / f"{measure}.png").read_bytes()
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        assert width > height > 400
        svg = ET.parse(folder / "out" / f"{measure}.svg").getroot()  # noqa: S314 - our own file
        assert svg.tag.endswith("svg")
        assert len(list(svg.iter())) > 200
    figure = plots.figure_of(rows, advice, grid, plots.MEASURES[1])
    first, second = figure.axes
    assert first.get_xscale() == "log"
    assert "%" in first.get_xlabel()
    assert "% of the exact join's" in first.get_ylabel().replace("\n", " ")
    assert (first.get_title(), second.get_title()) == ("window 3 ticks", "window 9 ticks")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(names[:-2]) == set(POLICIES) - {"custom"}
    means = {
        name: np.mean([row.importance_recall for row in rows if row.policy == name])
        for name in names[:-2]
    }
    assert list(means) == sorted(means, key=lambda name: -means[name])  # as the lines lie
    assert names[-2:] == ["target 50 %", "cheapest that meets it"]
    looks = {(line.get_color(), line.get_marker()) for line in first.get_lines()}
    assert len(looks) == len(first.get_lines())
    assert first.collections  # the band over the seeds of rand


def test_no_two_policies_look_alike() -> None:
    looks = [plots.look_of(name) for name in (*POLICIES, *SAMPLING)]
    for part in ("color", "marker"):
        assert len({look[part] for look in looks}) == len(looks)


def test_what_varies_has_panels_of_its_own(folder: Path) -> None:
    grid: dict[str, Any] = {"policies": "dgl,yield", "memory": "4,9,16", "targets": {"recall": 0.1}}
    found = swept(folder, **grid, splits="even,0.8", estimators="memory,history")
    rows = plots_rows(found.table)
    figure = plots.figure_of(rows, found.advice, found.report["grid"], plots.MEASURES[0])
    assert [axis.get_title() for axis in figure.axes] == [
        f"split {split}, estimator {estimator}"
        for split in ("even", "0.8")
        for estimator in ("memory", "history")
    ]
    for axis in figure.axes:  # yield counts no matches, and is in all; and the target
        curves = [line for line in axis.get_lines() if len(line.get_xdata()) == 3]
        assert len(curves) == 2
    many = swept(folder, **grid, splits="even,0.8,0.2,0.4", estimators="all", lanes="1,2")
    rows = plots_rows(many.table)
    figure = plots.figure_of(rows, many.advice, many.report["grid"], plots.MEASURES[0])
    assert len([axis for axis in figure.axes if axis.get_title()]) == 12
    assert "(the best lanes at each memory)" in figure.get_suptitle()
    shown = {
        tuple(line.get_ydata()) for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 3
    }
    expected = {
        tuple(
            100 * max(
                row.recall for row in rows
                if (row.policy, row.memory, row.split) == (policy, memory, "even")
                and row.estimator in (None, "memory")
            )
            for memory in ("4", "9", "16")
        )
        for policy in ("dgl", "yield")
    }  # fmt: skip
    assert shown == expected


def drawn(folder: Path, **more: Any) -> tuple[Any, Any, Any]:
    with pytest.warns(WinnowWarning, match="5% of the 13 tuples .* is none: give 8% or more"):
        found = swept(folder, policies="all", memory="5%:100%:x2", windows="3,9", seeds="0:3",
                      targets={"importance_recall": 0.5}, **more)  # fmt: skip
    return plots_rows(found.table), found.advice, found.report["grid"]


def plots_rows(found: pa.Table) -> Any:
    from engine.jobs.sweep.rows import rows_in  # noqa: PLC0415 - next to its use

    return rows_in(found)


def test_curves_are_means_with_their_extremes(folder: Path) -> None:
    found = swept(folder, policies="rand", memory="8,2", seeds="0:2")
    importance = plots.Measure("importance", "", "")
    curve = plots.curve_of(plots_rows(found.table), importance, percent=False)
    values = found.table["importance"].to_pylist()
    assert [point.memory for point in curve] == [2.0, 8.0]
    assert curve[1].mean == pytest.approx(np.mean(values[:3]))
    assert (curve[1].least, curve[1].greatest) == (min(values[:3]), max(values[:3]))


def test_a_folder_that_is_there_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "mine").touch()
    assert main(words(folder)) == 2
    assert "out exists: remove it or give another --out" in capsys.readouterr().err
    assert [path.name for path in (folder / "out").iterdir()] == ["mine"]


def test_nothing_is_written_if_anything_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr(report_module, "draw", fails)
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(OutputError):
        swept(folder, out=folder / "deep" / "out")
    assert {path.name for path in folder.iterdir()} - before == {"cache"}


def test_the_device_in_the_report_is_the_one_that_ran(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU that is seen and cannot be opened: the CPU does it, unless the GPU was demanded."""
    ref = swept(folder, policies="simp")
    seen = Choice("gpu", "one is seen")
    monkeypatch.setattr(attempt, "choose_device", lambda _: seen)
    assert "too few to be faster" in swept(folder, policies="simp").report["device"]["reason"]
    monkeypatch.setattr(attempt, "LANES_A_CORE", 0)
    comp = swept(folder, policies="simp")
    assert comp.report["device"]["used"] == "cpu"
    assert comp.report["device"]["reason"].startswith("the GPU failed (")
    assert figures(comp) == figures(ref)
    with pytest.raises(DeviceError, match="use device auto or cpu"):
        swept(folder, policies="simp", device="gpu", out=folder / "out")
    assert not (folder / "out").exists()


def figures(result: SweepResult) -> list[dict[str, Any]]:
    return result.table.select([*FIGURES, "policy", "memory"]).to_pylist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": None}, "--windows is missing"),
        ({"policies": "dgl,simprob"}, "Did you mean 'simpprob'"),
        ({"memory": "10:20"}, "without a step"),
        ({"windows": "10min"}, "is a duration"),
        ({"seeds": "x"}, "give whole numbers"),
        ({"target": "recal=1"}, "Did you mean 'recall'"),
        ({"param": "gamma=1"}, "none of the policies has"),
        ({"param": "dgl.alpha=no"}, "parameter alpha of policy dgl"),
        ({"policies": "custom"}, "needs --param function=module:name"),
        ({"estimators": "windw"}, "Did you mean 'window'"),
        ({"device": "tpu"}, "--device is 'tpu'"),
        ({"engine": "sparc"}, "Did you mean 'spark'"),
        ({"memory": "0:9000:1", "policies": "all", "seeds": "0:9"}, "cells; give fewer"),
        ({"report": "."}, "is a folder"),
        ({"left": "no.parquet"}, "no.parquet"),
        ({"lanes": "0"}, "--lanes is 0"),
    ],
)
def test_bad_options_are_told_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], message: str
) -> None:
    assert main(words(folder, **options)) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("winnow sweep: error: ")
    assert message in shown.err
    assert not shown.out
    assert not (folder / "out").exists()


def test_a_job_file_says_the_same(folder: Path) -> None:
    job = folder / "sweep.toml"
    job.write_text(
        f'left = "{folder}/left.parquet"\nright = "{folder}/right.parquet"\non = ["k"]\n'
        'time = "t"\nimportance = "i"\nwindows = [3, 9]\nmemory = ["20%", "50%:100%:25%"]\n'
        'policies = ["dgl", "rand"]\nseeds = [4, 5]\ntarget = ["recall=0.5", "recall=90%"]\n'
        f'engine = "local"\ncache = "{folder}/cache"\nout = "{folder}/out"\n'
        "[param]\nalpha = 3\n[param.dgl]\nbeta = 0.5\n"
    )
    assert main(["sweep", "--job", str(job), "--seeds=7"]) == 0
    expected = swept(folder, policies="dgl,rand", windows="3,9", memory="20%,50%,75%,100%", seeds=7,
                     params={"alpha": 3, "dgl.beta": 0.5})  # fmt: skip
    written = pq.read_table(folder / "out" / "sweep.parquet")
    assert written.select(FIGURES).equals(expected.table.select(FIGURES))
    assert written["seed"].to_pylist()[4:8] == [7] * 4
    assert len(json.loads((folder / "out" / "sweep.json").read_text())["advice"]) == 4


def test_rows_set_aside_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(t, t % 3, 1.0) for t in range(30)]
    bad = [*rows, (31, 1, -1.0)]
    for side in ("left", "right"):
        pq.write_table(table(bad), tmp_path / f"{side}.parquet")
    assert main(words(tmp_path)) == 2
    assert "1 row is negative (row 30)" in capsys.readouterr().err
    assert main(words(tmp_path, bad_rows="quarantine")) == 0
    report = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert report["rejected"] == {"left": 1, "right": 1}


def test_tables_are_swept_as_archives_are(folder: Path) -> None:
    sides = [pq.read_table(folder / f"{side}.parquet") for side in ("left", "right")]
    grid: dict[str, Any] = COMMON | {"windows": [3, 9], "memory": [4, "50%"], "policies": "dgl,age"}
    found = winnow.sweep(*sides, **grid, targets={"recall": "50%"})
    expected = swept(folder, policies="dgl,age", memory="4,50%", windows="3,9")
    assert found.outputs.select(FIGURES).equals(expected.table.select(FIGURES))
    assert len(found.advice) == 2
    with pytest.raises(TypeError, match="a pair that differs by side is for winnow replay"):
        winnow.sweep(*sides, window_left=3, **grid)
    with pytest.raises(TypeError, match="unexpected keyword 'colour'"):
        winnow.sweep(*sides, colour=3, **grid)
    with pytest.raises(InputError, match="has no column 'nokey'"):
        winnow.sweep(*sides, **(grid | {"on": "nokey"}))


def test_whole_seconds_are_ticks_of_a_second(folder: Path) -> None:
    base = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    sides, timed = [], []
    for side in ("left", "right"):
        plain = pq.read_table(folder / f"{side}.parquet")
        moments = [base + dt.timedelta(seconds=t) for t in plain["t"].to_pylist()]
        sides.append(plain)
        timed.append(plain.set_column(0, "t", pa.array(moments, pa.timestamp("s", "UTC"))))
    grid: dict[str, Any] = COMMON | {"memory": [6], "policies": "dgl,simp"}
    found = winnow.sweep(*timed, windows="5s,1min", **grid)
    expected = winnow.sweep(*sides, windows="5,60", **grid)
    assert found.outputs.select(FIGURES).equals(expected.outputs.select(FIGURES))
    assert found.report["grid"]["tick"] == "s"
