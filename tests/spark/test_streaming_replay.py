"""Streaming replays without a stream: what is read when, and lanes that go on from bytes."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from spark_cases import SETTINGS as SHARED
from spark_cases import archived, drawn
from stream_cases import State, by_hand, micro_batch, parts, planned, same
from thorough import THOROUGH, repeats

from engine.policies import POLICIES
from engine.runtime.errors import InputError, SpecError, WinnowError
from spark_plugin.streaming import feed as feed_module
from spark_plugin.streaming import lane as lane_module
from spark_plugin.streaming import replay
from spark_plugin.streaming import source as source_module
from spark_plugin.streaming.feed import TimeIndex
from spark_plugin.streaming.options import parse, parse_speed
from spark_plugin.streaming.reading import rows_between
from spark_plugin.streaming.source import Source
from spark_plugin.streaming.work import stateful

SETTINGS = SHARED | {
    "multiplicative": {"policy": "multiplicative", "combine": "product"},
    "simp fixed": {"policy": "simp", "split": 0.8},
    "recent": {"policy": "recent", "combine": "max"},
    "custom": {"policy": "custom"},
}


def cheapest(
    imp: float,
    m: float,
    age: float,
    lifetime: float,
    previous: float,  # noqa: ARG001
    produced: float,  # noqa: ARG001
) -> float:
    return imp * m * (lifetime - age)


SETTINGS["custom"]["params"] = {"function": cheapest}
TRIED = {own.get("policy", "dgl") for own in SETTINGS.values()}
SETTINGS |= {name: {"policy": name} for name in POLICIES if name not in TRIED}
OFTEN = ("dgl lanes", "dimpprob history", "age lanes", "exact")


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts(tmp_path_factory.mktemp("parts"), [drawn(1), drawn(2)])


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_are_those_of_the_archives_wherever_it_is_cut(
    spark: Any, archives: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "IDLE", 2)
    expected = archived(archives, **SETTINGS[name])
    ready = planned(spark, archives, **SETTINGS[name])
    often = (2, 40) if THOROUGH or name in OFTEN else (1, 8)
    for seed, batches_ in (often, *repeats([(0, 2)])):
        same(by_hand(ready, seed, batches_), expected)


@pytest.mark.parametrize("on", ["word", "money", ["wide", "at"]])
def test_any_join_attribute(
    spark: Any, archives: Path, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "IDLE", 2)
    options = {"on": on, "lanes": 3, "policy": "prob", "memory": "20%"}
    same(by_hand(planned(spark, archives, **options), 1), archived(archives, **options))


@pytest.mark.parametrize(
    ("time", "window", "importance"),
    [
        ("moment", dt.timedelta(minutes=9), "weight"),
        ("local", "0.15h", None),
        ("date", "9days", "i"),
        ("floating", 9, "weight"),
    ],
)
def test_any_time_and_importance(
    spark: Any, archives: Path, time: str, window: Any, importance: str | None
) -> None:
    options = {
        "time": time, "window": window, "importance": importance, "columns": "ids",
        "policy": "prob",
    }  # fmt: skip
    same(by_hand(planned(spark, archives, **options), 2), archived(archives, **options))


def test_a_start_is_of_the_archives_zone_and_not_of_the_sessions(
    spark: Any, tmp_path: Path
) -> None:
    zoned = pa.timestamp("us", "Asia/Tokyo")
    sides = [pa.table({"t": pa.array([0, 9 * 3600 * 10**6], zoned), "k": [1, 1]})] * 2
    options = {"importance": None, "window": "1s", "start_ts": "1970-01-01 10:00", "columns": "ids"}
    folder = parts(tmp_path, sides)
    same(by_hand(planned(spark, folder, **options), 1), archived(folder, **options))


def test_groups_have_states_of_their_own(spark: Any, archives: Path) -> None:
    options = {"partition_by": ["group", "day"], "lanes": 2, "memory": 8}
    same(by_hand(planned(spark, archives, **options), 3), archived(archives, **options))


def test_a_state_holds_what_the_memories_hold_and_no_more(spark: Any, tmp_path: Path) -> None:
    """State after 4,000 rows a side is no larger than after 400: K and the window bound it."""
    rng = np.random.default_rng(5)
    rows = 4000
    sides = [
        pa.table(
            {
                "t": np.arange(rows),
                "k": rng.integers(0, 8, rows),
                "i": rng.random(rows),
                "text": [f"{x:.17f}" * 8 for x in rng.random(rows)],
            }
        )
        for _ in range(2)
    ]
    ready = planned(spark, parts(tmp_path, sides, 500), policy="prob", window=300, memory=20)
    states: dict[Any, bytes] = {}
    micro_batch(ready, states, 0, 400)
    early = sum(map(len, states.values()))
    micro_batch(ready, states, 400, rows)
    assert sum(map(len, states.values())) < 1.2 * early < 40_000


def test_wide_rows_reach_the_jvm_in_small_pieces(spark: Any, tmp_path: Path) -> None:
    """Packs of 131,072 rows each, whatever their width, ended a JVM of 1 GiB."""
    rows, most = 3000, 5 << 20
    side = pa.table(
        {"t": [0] * rows, "k": range(rows), "i": [1.0] * rows, "p": ["x" * 9000] * rows}
    )
    options = {"policy": "recent", "memory": 2 * rows}
    ready = planned(spark, parts(tmp_path, [side, side], rows), **options)
    packs = list(rows_between(ready.feed, tuple(ready.index.overlapping(0, 1)), 0, 1))
    assert max(batch.nbytes for batch in packs) < 5 * most
    assert max(len(pack.as_py()) for batch in packs for pack in batch["rows"]) < most
    frame = pa.Table.from_batches(packs).to_pandas()
    found = list(stateful(ready.task)((b"", 0), iter([frame]), State(None)))
    sizes = [len(cell) for part in found for cell in part["rows"]]
    assert sum(sizes) > 2 * 9000 * rows
    assert max(sizes) < most


def test_other_options_do_not_go_on_from_a_state(spark: Any, archives: Path) -> None:
    states: dict[Any, bytes] = {}
    micro_batch(planned(spark, archives, policy="prob", memory=12), states, 0, 30)
    with pytest.raises(SpecError, match="replay with other options"):
        micro_batch(planned(spark, archives, policy="prob", memory=14), states, 30, 60)


def stream(folder: Path, **options: Any) -> Any:
    """Return what hands out micro-batches of rows as they are."""
    given = {"left": str(folder / "left"), "right": str(folder / "right"), "time": "t"}
    return Source(given | {k: str(v) for k, v in options.items()}).streamReader(None)


@pytest.mark.parametrize(("zone", "hours"), [("Europe/Berlin", 2), ("UTC", 0), (None, 0)])
def test_a_start_without_an_offset_is_of_the_streams_zone(
    zone: str | None, hours: int, tmp_path: Path
) -> None:
    times = pa.array([0], pa.timestamp("us", zone))
    for side in ("left", "right"):
        pq.write_table(pa.table({"t": times}), tmp_path / f"{side}.parquet")
    given = {side: str(tmp_path / f"{side}.parquet") for side in ("left", "right")}
    found = parse({**given, "time": "t", "start": "2024-07-01"})
    begin = dt.datetime(2024, 7, 1, tzinfo=dt.UTC) - dt.timedelta(hours=hours)
    assert found.start == round(begin.timestamp()) * 10**6


def batches(reader: Any, limit: Any = None) -> list[tuple[int, int]]:
    """Return the ticks at which the micro-batches of a stream begin and end."""
    at = reader.initialOffset()
    found = []
    while True:
        following = reader.latestOffset(at, limit or reader.getDefaultReadLimit())
        if following == at:
            return found
        found.append((at["ts"], following["ts"]))
        at = following


def rows_in(reader: Any, begin: int, end: int) -> list[tuple[str, int]]:
    """Return the rows of a micro-batch."""
    offsets = ({**reader.initialOffset(), "ts": at} for at in (begin, end))
    read = (b for part in reader.partitions(*offsets) for b in reader.read(part))
    return [(row["side"], row["row"]) for batch in read for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "options", [{"rows_per_batch": 37}, {"ticks_per_batch": 7}, {"rows_per_batch": 1}, {}]
)
def test_every_row_is_in_one_micro_batch(archives: Path, options: dict[str, int]) -> None:
    reader = stream(archives, partitions=3, **options)
    cuts = batches(reader)
    assert all(one[1] == other[0] for one, other in pairwise(cuts))
    ts = {side: pq.read_table(archives / side)["t"].to_pylist() for side in ("left", "right")}
    seen: list[tuple[str, int]] = []
    most = options.get("rows_per_batch", 10**6)
    for begin, end in cuts:
        found = rows_in(reader, begin, end)
        assert all(begin <= ts[side][row] < end for side, row in found)
        assert len(found) <= most or len({ts[side][row] for side, row in found}) == 1
        assert end - begin <= options.get("ticks_per_batch", 10**6)
        seen += found
    assert sorted(seen) == sorted((s, r) for s, own in ts.items() for r in range(len(own)))


def test_all_that_is_available_is_one_micro_batch(archives: Path) -> None:
    reader = stream(archives, rows_per_batch=5, ticks_per_batch=2)
    index = TimeIndex(parse_of(archives))
    assert batches(reader, ReadAllAvailable()) == [(index.first, index.end)]
    assert reader.reportLatestOffset()["ts"] == index.end


def parse_of(folder: Path) -> Any:
    """Return the feed of rows as they are."""
    given = {"left": str(folder / "left"), "right": str(folder / "right"), "time": "t"}
    return parse(given).feed


def test_a_gap_in_time_makes_no_micro_batch_of_its_own(tmp_path: Path) -> None:
    sides = [pa.table({"t": [0, 1, 2, 1000 + side, 1001]}) for side in (0, 1)]
    reader = stream(parts(tmp_path, sides, 1), ticks_per_batch=10)
    assert batches(reader) == [(0, 10), (10, 1002)]


def test_event_time_goes_by_at_its_speed(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(source_module.time, "monotonic", lambda: clock[0])
    reader = stream(archives, speed="10/s", start=20)
    at = reader.initialOffset()
    assert at["ts"] == 20
    assert reader.latestOffset(at, ReadMaxRows(10**6)) == at
    clock[0] += 1.5
    following = reader.latestOffset(at, ReadMaxRows(10**6))
    assert following["ts"] == 35
    assert reader.latestOffset(following, ReadMaxRows(10**6)) == following
    clock[0] += 1e6
    end = reader.latestOffset(following, ReadMaxRows(10**6))
    assert end == reader.reportLatestOffset()
    reader = stream(archives, speed="0.001/s")
    reader.prepareForTriggerAvailableNow()
    assert batches(reader)[-1][1] == end["ts"]


def test_the_index_reads_no_more_than_tells(archives: Path) -> None:
    """Times without statistics are read once; rows of a range lie in its row groups."""
    feed = parse_of(archives)
    index = TimeIndex(feed)
    for begin, end in [(0, 5), (40, 41), (index.first, index.end)]:
        chunks = tuple(index.overlapping(begin, end))
        read = sum(batch.num_rows for batch in rows_between(feed, chunks, begin, end))
        ts = [pq.read_table(archives / side)["t"].to_numpy() for side in ("left", "right")]
        assert read == sum(int(((own >= begin) & (own < end)).sum()) for own in ts)


def test_many_row_groups_take_time_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A footer is parsed once, not once a row group; times are compared in wholes."""
    rng = np.random.default_rng(4)
    sides = [pa.table({"t": rng.permutation(300)}) for _ in range(2)]
    feed = parse_of(parts(tmp_path, sides, 1))
    parsed, compared = [], []
    given, least = feed_module.reading.parquet_file, np.partition

    def opened(path: Any, **options: Any) -> Any:
        parsed.extend([path] * ("metadata" not in options))
        return given(path, **options)

    def fewest(*arguments: Any) -> Any:
        compared.append(arguments)
        return least(*arguments)

    monkeypatch.setattr(feed_module.reading, "parquet_file", opened)
    monkeypatch.setattr(np, "partition", fewest)
    index = TimeIndex(feed)
    assert index.until(0, 300, 400) == 200
    assert sum(b.num_rows for b in rows_between(feed, tuple(index.overlapping(0, 300)), 0, 9)) == 18
    assert len(parsed) <= 2 * 6  # two sides of three files: by the index, and by what reads rows
    assert len(compared) < 12


def test_unsigned_times_are_read_as_they_are(tmp_path: Path) -> None:
    side = pa.table({"t": pa.array([3, 1, 2**61], pa.uint64())})
    reader = stream(parts(tmp_path, [side, side], 1), rows_per_batch=3)
    assert batches(reader) == [(1, 3), (3, 2**61), (2**61, 2**61 + 1)]
    assert rows_in(reader, 1, 4) == [("left", 1), ("right", 1), ("left", 0), ("right", 0)]


def test_a_micro_batch_ends_before_the_instant_that_is_too_much(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    sides = [pa.table({"t": rng.integers(0, 60, 200)}) for _ in range(2)]
    index = TimeIndex(parse_of(parts(tmp_path, sides, 9)))
    both = np.sort(np.concatenate([side["t"].to_numpy() for side in sides]))
    for rows in range(1, 420, 7):
        for begin, end in ((0, 60), (7, 40), (30, 31)):
            within = both[(both >= begin) & (both < end)]
            expected = end
            if within.size > rows:
                expected = max(int(within[rows]), int(within[0]) + 1)
            assert index.until(begin, end, rows) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"left": None}, "no archive left: give option left"),
        ({"time": None}, "stream left has no time column"),
        ({"time": "nope"}, "no column 'nope'"),
        ({"speed": "fast"}, "speed is 'fast'; give max, 60x"),
        ({"speed": "60x"}, "time is a plain number, which no clock measures"),
        ({"speed": "0x", "time": "moment"}, "speed is '0x'"),
        ({"rows_per_batch": "0"}, "rows_per_batch is '0'; it must be a whole number, 1 or more"),
        ({"ticks_per_batch": "0"}, "ticks_per_batch 0 must be 1 tick or more"),
        ({"ticks_per_batch": "5min"}, "is a duration, but its time column holds plain numbers"),
        ({"columns": "x"}, "columns is 'x'; give all, none"),
        ({"columns": '["wort"]'}, "columns has 'wort', which is in neither.*Did you mean 'word'"),
        ({"colums": "all"}, "no option 'colums'.*Did you mean 'columns'"),
        ({"time": "word"}, "it must be an integer, a timestamp"),
    ],
)
def test_options_that_mean_nothing(
    archives: Path, options: dict[str, str | None], message: str
) -> None:
    given = {"left": str(archives / "left"), "right": str(archives / "right"), "time": "t"}
    told_ = {name: text for name, text in (given | options).items() if text is not None}
    with pytest.raises(WinnowError, match=message):
        parse(told_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"row": "t"}, "not replayed with row"),
        ({"fact": 1, "on": "k"}, "not replayed with fact"),
        ({"device": "gpu", "on": "k"}, "streams are decided on the CPU"),
    ],
)
def test_what_a_stream_cannot_do(archives: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        replay(archives / "left", archives / "right", **options)
    with pytest.raises(TypeError, match=r"unexpected keyword 'windw'\. Did you mean 'window'"):
        replay(archives / "left", archives / "right", windw=3)
    table: Any = pa.table({"t": [1]})
    with pytest.raises(
        SpecError, match=r"left is a pyarrow\.lib\.Table: give the path of an archive"
    ):
        replay(table, table, on="k", time="t", window=3)


def test_text_is_no_stream(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k\n1,2\n")
    with pytest.raises(InputError, match="is csv: a stream is read from Parquet"):
        replay(tmp_path / "a.csv", tmp_path / "a.csv", on="k", time="t", window=1)


def test_bad_rows_are_named(spark: Any, tmp_path: Path) -> None:
    sides = [pa.table({"t": [1, 2, 3], "k": [1, 1, 1], "i": [1.0, -1.0, 1.0]})] * 2
    ready = planned(spark, parts(tmp_path, sides), policy="prob", memory=4)
    with pytest.raises(InputError, match="column i of the left archive is negative in row 1 "):
        by_hand(ready, 1)
    broken = pa.table({"t": [1.0, None, 3.0]})
    (tmp_path / "b").mkdir()
    reader = stream(parts(tmp_path / "b", [broken, broken]))
    with pytest.raises(InputError, match="column t of the left archive is null in row 1 "):
        reader.initialOffset()


def test_an_archive_that_changes_is_refused(tmp_path: Path) -> None:
    sides = [pa.table({"t": [1, 2, 3]})] * 2
    reader = stream(parts(tmp_path, sides))
    first, last = reader.initialOffset(), reader.reportLatestOffset()
    parts_ = reader.partitions(first, last)
    pq.write_table(pa.table({"t": [1, 2, 3, 4]}), tmp_path / "left" / "part-[0].parquet")
    with pytest.raises(InputError, match="is not the file that the stream began with"):
        [list(reader.read(part)) for part in parts_]
    with pytest.raises(InputError, match="not those that the checkpoint is of"):
        stream(tmp_path).latestOffset(first, ReadMaxRows(5))


def test_speeds() -> None:
    assert parse_speed("1.5x", "s") == Fraction(3, 2)
    assert parse_speed("86400x", "day") == 1
