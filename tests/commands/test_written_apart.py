"""No report replaces an archive, another output, a link or a pipe; none hides results."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from job_cases import Streams, arguments, streams

import winnow
from engine.commands import main
from engine.report import envelope
from engine.runtime.errors import SpecError


@pytest.fixture
def archives(tmp_path: Path) -> Streams:
    return streams(tmp_path)


def refused(words: list[str], pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    shown, said = capsys.readouterr()
    assert shown == ""
    assert re.search(pattern, said), said


@pytest.mark.parametrize("command", ["replay", "bound", "sweep", "profile", "estimate"])
@pytest.mark.parametrize("option", ["report", "html"])
def test_no_report_replaces_an_archive(
    archives: Streams, command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (archives.folder / "left.parquet").read_bytes()
    for at in (archives.folder / "left.parquet", archives.folder / "x" / ".." / "left.parquet"):
        (archives.folder / "x").mkdir(exist_ok=True)
        base = f"--engine local --on k --time t --window 9 --memory 9 --{option}".split()
        words = [command, *base, str(at)]
        if command == "estimate":
            words += ["--policy", "prob"]
        for side in ("left", "right"):
            words += [f"--{side}", str(archives.folder / f"{side}.parquet")]
        refused(words, f"--{option} .*left.parquet is a file that is read: name another", capsys)
    assert (archives.folder / "left.parquet").read_bytes() == whole


@pytest.mark.parametrize("name", ["{}", "*"])
def test_no_report_replaces_a_file_of_a_folder_or_glob(
    archives: Streams, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = archives.folder / "in"
    inside.mkdir()
    (archives.folder / "left.parquet").rename(inside / "part.parquet")
    left = inside if name == "{}" else inside / "*.parquet"
    words = arguments(archives.folder, left=left, report=inside / "part.parquet")
    refused(words, "--report .*part.parquet is a file that is read", capsys)


@pytest.mark.parametrize("option", ["out", "report", "html", "plot"])
def test_nothing_is_written_into_an_archive(
    archives: Streams, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside, link = archives.folder / "in", archives.folder / "link"
    inside.mkdir()
    link.symlink_to(inside)
    (archives.folder / "left.parquet").rename(inside / "part.parquet")
    name = {"out": "x", "report": "x.json", "html": "x.html", "plot": "x.png"}[option]
    for below in (inside, inside / "deep", link, inside / ".." / "in"):
        words = arguments(archives.folder, left=inside, **{option: below / name})
        refused(words, f"--{option} .*{name} lies in .*/in, which is read, and would", capsys)
    assert [own.name for own in inside.iterdir()] == ["part.parquet"]
    for apart in (inside / f"_{name}", archives.folder / f"in{name}"):
        own = {"out": None, option: apart}
        assert main(arguments(archives.folder, left=inside, **own)) == 0


def test_outputs_may_lie_beside_lanes(archives: Streams) -> None:
    (cache := archives.folder / "cache").mkdir()
    for report in (cache / "r.json", archives.folder / "r.json"):
        own = {"cache": cache, "out": report.with_suffix(""), "report": report}
        assert main(arguments(archives.folder, **own)) == 0
        assert report.exists()


def test_a_page_may_lie_beside_the_outputs_that_it_is_of(archives: Streams) -> None:
    assert main(arguments(archives.folder, out=archives.folder / "o")) == 0
    page = archives.folder / "o" / "page.html"
    assert main(["report", str(archives.folder / "o"), "--html", str(page)]) == 0
    assert page.exists()


@pytest.mark.parametrize("command", ["replay", "sweep", "sample"])
def test_no_report_replaces_a_profile(
    archives: Streams, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = archives.folder / "streams.json"
    whole = b'{"rows": {}}'  # as a report begins, so that nothing else would hold it back
    place.write_bytes(whole)
    base = ["--engine", "local", "--on", "k", "--time", "t", "--window", "9", "--memory", "9"]
    for side in ("left", "right"):
        base += [f"--{side}", str(archives.folder / f"{side}.parquet")]
    for option in ("report", "html"):
        words = [command, *base, "--profile", str(place), f"--{option}", str(place)]
        refused(words, f"--{option} .*streams.json is a file that is read: name another", capsys)
    job = archives.folder / "job.toml"
    job.write_text(f'profile = "{place}"')
    words = [command, *base, "--job", str(job), "--report", str(place)]
    refused(words, "--report .*streams.json is a file that is read: name another", capsys)
    assert place.read_bytes() == whole


def test_no_report_replaces_a_plan_or_facts(
    archives: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, folder = archives.folder / "plan.parquet", archives.folder / "plan"
    folder.mkdir()
    for place in (plan, folder / "part.parquet"):
        place.write_text("a plan")
        named = folder if place.parent == folder else plan
        words = arguments(archives.folder, plan=named, policy=None, report=place)
        refused(words, f"--report .*{place.name} is a file that is read: name another", capsys)
    words = arguments(archives.folder, fact=plan, fact_left="k", fact_right="k", report=plan)
    refused(words, "--report .*plan.parquet is a file that is read: name another", capsys)


def test_no_report_replaces_the_profile_of_an_allocation(
    archives: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    place, jobs = archives.folder / "streams.json", archives.folder / "jobs.toml"
    place.write_text("{}")
    jobs.write_text(
        'memory = 9\nmetric = "recall"\n[[join]]\nleft = "l"\nright = "r"\non = "k"\ntime = "t"\n'
        f'window = 9\nprofile = "{place}"\n'
    )
    for own in (place, jobs):
        words = ["allocate", str(jobs), "--engine", "local", "--report", str(own)]
        refused(words, f"--report .*{own.name} is a file that is read: name another", capsys)


def test_no_report_replaces_the_job_or_what_is_none(
    archives: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    job = archives.folder / "job.toml"
    job.write_text('window = 9\n"on" = "k"\n')
    words = arguments(archives.folder, job=job, window=None, on=None)
    refused([*words, "--report", str(job)], "--report .*job.toml is a file that is read", capsys)
    notes = archives.folder / "notes.txt"
    notes.write_text("dear diary")
    for option, what in (("report", "report"), ("html", "HTML report")):
        words = arguments(archives.folder, **{option: notes})
        refused(words, f"{what} .*notes.txt would replace a file that is none", capsys)
    picture = archives.folder / "notes.png"
    picture.write_text("dear diary")
    words = arguments(archives.folder, plot=picture)
    refused(words, "plot .*notes.png would replace a file that is none", capsys)
    assert notes.read_text() == picture.read_text() == "dear diary"


def test_two_outputs_are_two_files(archives: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    one = archives.folder / "x.html"
    words = arguments(archives.folder, report=one, html=one)
    refused(words, "are both .*x.html: name two files", capsys)
    words = arguments(archives.folder, out=one, html=one)
    refused(words, "are both .*x.html: name two", capsys)
    assert not one.exists()


NESTED = {
    "replay --memory 9 --out o --cache o/c": "--cache o/c is in --out o, which is to be new",
    "replay --memory 9 --out c --cache c": "--out and --cache are both c: name two",
    "replay --out r.json/o --report r.json": "--report r.json, which is a file: name another",
    "replay --report r.json --html r.json/x.html": "--html r.json/x.html is in --report r.json",
    "sweep --memory 9 --policy dgl --out o --cache x/../o/c": "is in --out o, which is to be new",
    "sample --aggregate count --out o --aggregates-out o/a": "--aggregates-out o/a is in --out o",
    "sample --aggregate count --out a/o --aggregates-out a": "--out a/o is in --aggregates-out a",
    "sample --aggregate count --out s3://b/o --aggregates-out s3://b/o/a": "is in --out s3://b/o",
    "bound --memory 9 --out o --cache o/c": "--cache o/c is in --out o, which is to be new",
    "profile --out p --plots p/plots": "--plots p/plots is in --out p, which is a file: name",
    "profile --out p --plots p": "--out and --plots are both p: name two",
}


@pytest.mark.parametrize("line", NESTED)
def test_no_output_is_within_another(
    archives: Streams,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(archives.folder)
    before = sorted(archives.folder.iterdir())
    base = "--engine local --left left.parquet --right right.parquet --on k --time t --window 9"
    command, *rest = line.split()
    refused([command, *base.split(), *rest], NESTED[line], capsys)
    assert sorted(archives.folder.iterdir()) == before


def test_no_output_of_python_is_within_another(archives: Streams) -> None:
    left, right = (archives.folder / f"{side}.parquet" for side in ("left", "right"))
    out = archives.folder / "o"
    places = {"out": out, "aggregates": "count(*)", "aggregates_out": out / "a"}
    with pytest.raises(SpecError, match=r"aggregates_out .* is in out .*, which is to be new"):
        winnow.sample(left, right, on="k", time="t", window=9, memory=9, **places)


def test_reports_may_be_in_the_new_folder(archives: Streams) -> None:
    out = archives.folder / "o"
    assert (
        main(arguments(archives.folder, out=out, report=out / "r.json", html=out / "r.html")) == 0
    )
    assert {"r.json", "r.html"} < {own.name for own in out.iterdir()}


def test_a_report_is_written_anew_where_a_link_points(archives: Streams) -> None:
    target, link = archives.folder / "target.json", archives.folder / "link.json"
    target.write_text("{}")
    link.symlink_to(target)
    assert main(arguments(archives.folder, report=link)) == 0
    assert link.is_symlink()
    assert "recall" in json.loads(target.read_text())


def test_a_pipe_gets_the_report(archives: Streams) -> None:
    pipe = archives.folder / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert main(arguments(archives.folder, report=pipe)) == 0
    reader.join(10)
    assert pipe.is_fifo()
    assert "recall" in json.loads(got[0])


def test_results_are_printed_although_the_report_cannot_be_written(
    archives: Streams, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelope.Report, "save", _full)
    words = arguments(archives.folder, report=archives.folder / "r.json", out=archives.folder / "o")
    assert main(words) == 2
    shown, said = capsys.readouterr()
    assert "recall" in shown
    assert "the disk is full" in said


def _full(*_: object) -> None:
    raise envelope.OutputError("report r.json cannot be written: the disk is full")


def test_a_place_where_nothing_can_be_written(
    archives: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(archives.folder, report="/proc/no/x.json", out=archives.folder / "o")
    refused(words, "report /proc/no/x.json cannot be written: /proc is no folder to write", capsys)
    assert not (archives.folder / "o").exists()


@pytest.mark.parametrize("option", ["report", "html", "plot"])
def test_a_loop_of_links_is_no_place(
    archives: Streams, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = archives.folder / "a.png"
    loop.symlink_to("a.png")
    for place in (loop, loop / "x.png"):
        words = arguments(archives.folder, **{option: place})
        refused(words, r"a.png.* cannot be written \(Too many levels of symbolic links\)", capsys)
    assert loop.is_symlink()


@pytest.mark.parametrize("option", ["out", "left", "cache", "report", "html", "plot", "job"])
def test_names_too_long(archives: Streams, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments(archives.folder, **{option: archives.folder / ("x" * 300)})
    refused(words, "too long for a path: .* x{20}..., has 300 bytes of 255 at most", capsys)
    deep = archives.folder.joinpath(*["y" * 100] * 50)
    words = arguments(archives.folder, **{option: deep})
    refused(words, r"all has 5,\d\d\d of 4,095; shorten it", capsys)


def test_no_json_of_join_orders_replaces_a_stream(
    archives: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = (archives.folder / f"{side}.parquet" for side in ("left", "right"))
    words = f"explain --stream a={left} --stream b={right} --predicate equi:k --time t --window 9"
    refused([*words.split(), "--json", str(left)], "--json .* is a file that is read", capsys)


@pytest.mark.parametrize("option", ["out", "cache", "report", "html", "plot"])
def test_a_place_in_a_folder_that_may_not_be_entered(
    archives: Streams, option: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    closed, look, mkdir = archives.folder / "closed", Path.stat, Path.mkdir
    closed.mkdir()

    def refusing(true: Callable[..., Any]) -> Callable[..., Any]:
        def tried(place: Path, *given: Any, **how: Any) -> Any:
            if closed in place.parents:
                raise PermissionError(13, "Permission denied", str(place))
            return true(place, *given, **how)

        return tried

    monkeypatch.setattr(Path, "stat", refusing(look))
    monkeypatch.setattr(Path, "mkdir", refusing(mkdir))
    words = arguments(archives.folder, **{option: closed / "x.png"})
    refused(words, r"closed/x\.png\S* (cannot be written \(|: )?.*Permission denied", capsys)
