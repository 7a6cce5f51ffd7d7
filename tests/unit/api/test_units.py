"""Times, windows and memory in the units that people give and read."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import winnow
from engine.commands import main
from engine.jobs.size.sizing import slot_bytes
from engine.options.budget import TUPLE_BYTES, parse_amount
from engine.options.grid import parse_memory
from engine.policies import POLICIES
from engine.runtime.errors import InputError, SpecError
from engine.runtime.time_units import instant_text, parse_instant, parse_ticks, span_text

FIRST = 1_714_514_400_000_000
JOIN: dict[str, Any] = {"on": "k", "time": "t"}
BUDGET: dict[str, Any] = {"memory": 4, "policy": "dgl"}


def table(kind: pa.DataType) -> pa.Table:
    at = pa.array([FIRST + 5_000_000 * i for i in range(60)], pa.int64())
    return pa.table({"t": at.cast(kind), "k": [i % 3 for i in range(60)]})


EPOCHS = table(pa.int64())
TIMES = table(pa.timestamp("us", "Europe/Berlin"))


def test_plain_numbers_with_a_unit_join_as_timestamps_do() -> None:
    window = timedelta(seconds=30)
    start = datetime.fromtimestamp(FIRST / 1e6 + 60, UTC)
    own = {"window": window, "start_ts": start, **JOIN, **BUDGET}
    found = winnow.replay(EPOCHS, EPOCHS, time_unit="us", **own)
    expected = winnow.replay(TIMES, TIMES, **own)
    assert found.outputs.num_rows == expected.outputs.num_rows > 0
    for name in ("left_row", "right_row"):
        assert found.outputs[name].equals(expected.outputs[name])
    assert found.outputs["ts"].type == pa.timestamp("us")
    assert found.outputs["ts"].cast(pa.int64()).equals(expected.outputs["ts"].cast(pa.int64()))
    assert found.report.window == {
        "left": 30_000_000, "right": 30_000_000, "tick": "us", "zone": None
    }  # fmt: skip
    assert expected.report.window.zone == "Europe/Berlin"
    assert found.plot().axes[0].get_xlabel() == "time"


def test_a_unit_of_time_reaches_every_task_on_two_streams() -> None:
    own = {"window": "30s", "time_unit": "us", **JOIN}
    swept = winnow.sweep(EPOCHS, EPOCHS, policy="dgl", memory=4, **own)
    assert swept.outputs["window_left"].to_pylist() == [30_000_000]
    assert swept.report.grid.tick == "us"
    assert winnow.bound(EPOCHS, EPOCHS, memory=4, **own).report.window.tick == "us"
    sample = winnow.sample(EPOCHS, EPOCHS, memory=8, aggregates="count(*) every 1min", **own)
    (aggregate,) = sample.aggregates.values()
    assert aggregate["window_begin"].type == pa.timestamp("us")
    assert winnow.profile(EPOCHS, EPOCHS, memory=4, **own).report.unit == "us"


def test_a_unit_of_time_reaches_every_task_on_several_streams() -> None:
    own: dict[str, Any] = {"window": "30s", "time": "t", "predicate": "equi:k"}
    stated = own | {"time_unit": "us"}
    epochs, times = (dict.fromkeys(("a", "b", "c"), it) for it in (EPOCHS, TIMES))
    harvest = {"throttle": 0.5, "basic_window": "10s", "adapt_every": "20s"}
    for shed in ({}, harvest, {"memory": 9, "policy": "prob"}):
        found = winnow.multijoin(epochs, **stated, **shed)
        expected = winnow.multijoin(times, **own, **shed)
        assert found.outputs.num_rows == expected.outputs.num_rows > 0
        assert found.outputs["ts"].type == pa.timestamp("us")
        assert found.outputs["ts"].cast(pa.int64()).equals(expected.outputs["ts"].cast(pa.int64()))
        assert found.report.window.tick == "us"
    assert winnow.explain(epochs, **stated).report == winnow.explain(times, **own).report
    totals = winnow.estimate(epochs, aggregates="count every 1min", **stated)
    assert totals.outputs["window_begin"].type == pa.timestamp("us")
    join = {"left": EPOCHS, "right": EPOCHS, "window": "30s", "time_unit": "us", **JOIN}
    assert winnow.allocate({"memory": 8, "join": [join]}).outputs.num_rows == 1
    fact = pa.table({"a": [0, 1], "b": [0, 1]})
    star = winnow.replay_streams(
        {"a": EPOCHS, "b": EPOCHS}, fact, on="k", time="t", window="30s", memory=6,
        time_unit="us", start_ts="2024-04-30T22:01:00",
    )  # fmt: skip
    plain = winnow.replay_streams(
        {"a": EPOCHS, "b": EPOCHS}, fact, on="k", time="t", window=30_000_000, memory=6,
        start_ts=FIRST + 60_000_000,
    )  # fmt: skip
    ticks = star.outputs["ts"].cast(pa.int64())
    at = star.outputs.schema.get_field_index("ts")
    assert star.outputs.set_column(at, "ts", ticks) == plain.outputs
    assert star.report["window"]["tick"] == "us"


def test_a_time_without_an_offset_is_of_the_zone_of_the_times() -> None:
    start, shown = FIRST + 60_000_000, "2024-05-01T00:01:00"  # in Berlin
    of_three = dict.fromkeys(("a", "b", "c"), TIMES)
    for given in (shown, f"{shown}+02:00", "2024-04-30T22:01:00Z", datetime.fromisoformat(shown),
                  datetime(2024, 4, 30, 22, 1, tzinfo=UTC)):  # fmt: skip
        found = winnow.replay(TIMES, TIMES, window="30s", start_ts=given, **JOIN)
        assert found.outputs["ts"].cast(pa.int64()).to_pylist()[0] == start
        own = winnow.multijoin(of_three, predicate="equi:k", time="t", window="30s", start_ts=given)
        assert min(own.outputs["ts"].cast(pa.int64()).to_pylist()) == start
    plain = winnow.replay(
        EPOCHS, EPOCHS, window="30s", start_ts="2024-04-30T22:01:00", time_unit="us", **JOIN
    )
    assert plain.outputs["ts"].cast(pa.int64()).to_pylist()[0] == start


def test_lanes_of_plain_numbers_serve_any_unit(tmp_path: Path) -> None:
    for side in ("left", "right"):
        pq.write_table(EPOCHS, tmp_path / f"{side}.parquet")
    sides = [tmp_path / f"{side}.parquet" for side in ("left", "right")]
    shared = {"cache": tmp_path / "lanes", **JOIN, **BUDGET}
    plain = winnow.replay(*sides, window=30_000_000, **shared)
    micro = winnow.replay(*sides, window="30s", time_unit="us", **shared)
    assert plain.report.window.tick == "tick"
    assert micro.report.window.tick == "us"
    assert plain.outputs["left_row"].equals(micro.outputs["left_row"])
    milli = winnow.replay(*sides, window="30000s", time_unit="ms", **shared)
    assert milli.report.window.left == 30_000_000


def test_a_unit_of_times_that_have_one_is_refused() -> None:
    with pytest.raises(SpecError, match="time_unit says what one tick of plain numbers is"):
        winnow.replay(TIMES, TIMES, window="30s", time_unit="us", **JOIN)


@pytest.mark.parametrize("kind", ["zone", "plain"])
def test_a_terminal_shows_windows_and_times_as_people_write_them(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = TIMES if kind == "zone" else EPOCHS
    for side in ("left", "right"):
        pq.write_table(own, tmp_path / f"{side}.parquet")
    words = [f"--{side}={tmp_path}/{side}.parquet" for side in ("left", "right")]
    words += ["--on=k", "--time=t", "--engine=local", f"--cache={tmp_path}/lanes"]
    words += [] if kind == "zone" else ["--time-unit=us"]
    report = tmp_path / "report.json"
    assert main(["replay", *words, "--window=1min", "--memory=4", "--policy=dgl",
                 f"--report={report}", f"--out={tmp_path}/out",
                 f"--html={tmp_path}/page.html"]) == 0  # fmt: skip
    shown = capsys.readouterr().out
    assert "│   60 s │" in shown
    first = "2024-05-01 00:00:00+02:00" if kind == "zone" else "2024-04-30 22:00:00 "
    assert f"over time, {first}" in " ".join(shown.split())
    assert str(FIRST) not in shown
    content = json.loads(report.read_text())
    begin = content["lost"]["by_time"][0]
    assert (begin["from"], begin["begin"]) == (FIRST, first.strip())
    last = content["lost"]["by_time"][-1]
    assert parse_instant(last["end"], "us", "it") == last["to"]
    assert content["windows"] == {"left": "60 s", "right": "60 s"}
    again = report.with_name("again.html")
    assert main(["report", str(tmp_path / "out"), f"--html={again}"]) == 0
    assert again.read_bytes() == (tmp_path / "page.html").read_bytes()
    capsys.readouterr()
    assert main(["sweep", *words, "--window=10min", "--memory=4", "--policy=dgl"]) == 0
    assert "window 10min" in " ".join(capsys.readouterr().out.split())
    every = "--aggregate=count(*) every 1min"
    assert main(["sample", *words, "--window=1min", "--memory=8", every]) == 0
    assert f"{first.strip()} until" in " ".join(capsys.readouterr().out.replace("│", "").split())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "day"])
def test_what_is_shown_reads_back(unit: str) -> None:
    for ticks in (0, 1, 59, 60, 61, 3_600, 90_000, 1_000_000, 86_400_000_000, 7_200_000_000_000):
        shown = span_text(ticks, unit).replace(",", "")
        assert parse_ticks(shown, unit, "{}") == ticks, shown
    for ticks in (0, 1, -1, 19_844, *(() if unit == "day" else (1_714_514_400,))):
        assert parse_instant(instant_text(ticks, unit), unit, "it") == ticks
        zoned = instant_text(ticks, unit, "America/New_York")
        assert parse_instant(zoned, unit, "it") == ticks


@pytest.mark.parametrize("zone", ["+05:30", "GMT+05:30", "UTC+0530", "+5:30", "Asia/Kolkata"])
def test_an_instant_is_of_a_zone_as_arrow_and_spark_write_it(zone: str) -> None:
    assert parse_instant("1970-01-01T06:30", "s", "start_ts", zone) == 3600
    hours = {"-3": 3, "UT-03": 3, "Z": 0, "UT": 0, "GMT": 0, "Etc/GMT+3": 3}
    for name, west in hours.items():
        assert parse_instant("1970-01-01", "s", "start_ts", name) == 3600 * west, name


@pytest.mark.parametrize("zone", ["IST", "+05:30:30", "America"])
def test_an_instant_of_an_unknown_zone_needs_an_offset(zone: str) -> None:
    with pytest.raises(SpecError, match=f"zone {re.escape(repr(zone))} is unknown .*the offset"):
        parse_instant("1970-01-01T06:30", "us", "start_ts", zone)
    assert parse_instant("1970-01-01T05:30+05:30", "us", "start_ts", zone) == 0


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "+05:30", "-03:00", "UTC"])
def test_a_zone_shows_the_clock_there(zone: str) -> None:
    hours = {"+05:30": "Asia/Kolkata", "-03:00": "America/Sao_Paulo"}
    for seconds in (FIRST // 10**6, 1_730_000_000, 1_735_689_600):
        there = datetime.fromtimestamp(seconds, ZoneInfo(hours.get(zone, zone)))
        assert instant_text(seconds, "s", zone) == there.isoformat(" ")


@pytest.mark.parametrize(
    ("text", "tuples"),
    [
        ("64MB", 182_857), ("1 KiB", 2), ("1.5 kB", 4), ("350B", 1), ("0B", 0), ("2GiB", 6_135_667),
    ],
)  # fmt: skip
def test_memory_may_be_in_bytes(text: str, tuples: int) -> None:
    assert parse_amount(text, "--memory").tuples == tuples
    assert parse_memory(f"7,{text}")[1].tuples == tuples


def test_bytes_for_less_than_a_tuple_are_refused() -> None:
    told = "--memory is '349 B', less than a tuple takes: give 350B or more, or 0"
    with pytest.raises(SpecError, match=told):
        parse_amount("349 B", "--memory")


def test_a_tuple_takes_no_more_than_it_counts_as() -> None:
    largest = max(slot_bytes(policy) for policy in POLICIES.values())
    assert 0.9 * TUPLE_BYTES < largest <= TUPLE_BYTES


def test_bytes_are_a_number_of_tuples_in_a_replay() -> None:
    own = {"window": "30s", "policy": "dgl", **JOIN}
    found = winnow.replay(TIMES, TIMES, memory="1600B", **own)
    expected = winnow.replay(TIMES, TIMES, memory=4, **own)
    assert found.outputs.equals(expected.outputs)
    assert found.report.memory.both == 4
    with pytest.raises(SpecError, match="memory is '64PB'; give a whole number of tuples, 0 or"):
        winnow.replay(TIMES, TIMES, memory="64PB", **own)


@pytest.mark.parametrize("ending", ["arrow", "csv"])
def test_a_frame_in_seconds_beside_a_file_in_seconds_joins_by_seconds(
    ending: str, tmp_path: Path
) -> None:
    seconds = table(pa.timestamp("us")).select(["k"]).append_column(
        "t", table(pa.timestamp("us"))["t"].cast(pa.timestamp("s"))
    )  # fmt: skip
    place = tmp_path / f"right.{ending}"
    write = feather.write_feather if ending == "arrow" else pacsv.write_csv
    write(seconds, str(place))
    own: dict[str, Any] = {"window": 30, **JOIN}
    start = {"start_ts": FIRST // 10**6 + 60}
    expected = winnow.replay(seconds, seconds, **own, **start)
    found = winnow.replay(seconds, place, **own, **start)
    assert found.report.window == expected.report.window
    assert found.report.window.tick == "s"
    rows = ["left_row", "right_row", "ts"]
    assert found.outputs.select(rows) == expected.outputs.select(rows)
    swept = winnow.sweep(place, seconds, policy="prob", memory=4, **own).outputs
    assert swept["exact_outputs"].to_pylist() == [
        winnow.replay(place, place, **own).outputs.num_rows
    ]
    (total,) = winnow.estimate(seconds, place, **own).outputs["estimate"].to_pylist()
    assert total == swept["exact_outputs"].to_pylist()[0]
    join = {"left": seconds, "right": place, **own}
    both = {"left": seconds, "right": seconds, **own}
    allocated = [winnow.allocate({"memory": 8, "join": [it]}).outputs for it in (join, both)]
    assert allocated[0] == allocated[1]


def test_the_profile_of_frames_in_seconds_serves_frames_in_seconds(tmp_path: Path) -> None:
    coded = pa.chunked_array([pa.array(own).dictionary_encode() for own in (["a", "b"], ["c"])])
    seconds = pa.table({"t": pa.array([1, 2, 3], pa.timestamp("s")), "k": coded})
    profile = winnow.profile(seconds, seconds, window=9, **JOIN).profile
    profile.save(tmp_path / "p.json")
    own = {"window": 9, "memory": 4, "profile": tmp_path / "p.json"}
    found = winnow.sample(seconds, seconds, **own, **JOIN)
    assert (profile.unit, found.report.window.tick) == ("s", "s")


def test_an_estimate_through_facts_has_the_windows_of_the_replay(tmp_path: Path) -> None:
    seconds = pa.table({"t": pa.array([0, 10, 20], pa.timestamp("s")), "k": [1, 1, 1]})
    links = pa.table({"a": [1], "b": [1]})
    pq.write_table(links, tmp_path / "links.parquet")
    join: dict[str, Any] = {"window": 15, "fact_left": "a", "fact_right": "b", **JOIN}
    for fact in (links, tmp_path / "links.parquet"):
        assert winnow.replay(seconds, seconds, fact=fact, **join).outputs.num_rows == 7
        (found,) = winnow.estimate(seconds, seconds, fact=fact, **join).outputs["estimate"]
        assert found.as_py() == 7
    finer = links.append_column("from", pa.array([0], pa.timestamp("ms")))
    pq.write_table(finer, tmp_path / "finer.parquet")
    for fact in (finer, tmp_path / "finer.parquet"):
        with pytest.raises(InputError, match=r"are in whole seconds, and .* cast the streams' to"):
            winnow.estimate(seconds, seconds, fact=fact, fact_begin="from", **join)
