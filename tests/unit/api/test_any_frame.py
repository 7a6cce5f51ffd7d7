"""`import winnow`: any frame gives what its table gives, and every task one kind of result."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pages import checked
from places import ROOT

import winnow
from engine.api.result import Fields, Result
from engine.runtime.errors import InputError, SpecError

ROWS = 120
JOIN: dict[str, Any] = {"on": "item", "time": "at", "importance": "v"}
BUDGET: dict[str, Any] = {"memory": "40%", "policy": "dgl"}
ZONE = "Europe/Berlin"
TASKS = {
    "allocate", "bound", "estimate", "explain", "generate", "lookup", "multijoin", "profile",
    "replay", "replay_streams", "sample", "sweep",
}  # fmt: skip


def table(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    at = 1_714_514_400_000_000 + np.sort(random.integers(0, 600, ROWS)) * 1_000_000
    return pa.table(
        {
            "at": pa.array(at).cast(pa.timestamp("us", ZONE)),
            "item": pa.array(random.choice(["a", "b", "c"], ROWS)),
            "v": pa.array(random.integers(1, 9, ROWS).astype(float)),
        }
    )


LEFT, RIGHT = table(1), table(2)


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    return winnow.replay(LEFT, RIGHT, window="30s", **JOIN, **BUDGET).outputs


def parquet(own: pa.Table, folder: Path) -> Path:
    path = folder / f"{own['at'][0].value}_{own['v'][0].as_py()}.parquet"
    pq.write_table(own, path)
    return path


class Capsule:
    """What has nothing but ``__arrow_c_stream__``, and gives its rows once."""

    def __init__(self, own: pa.Table) -> None:
        self._reader: pa.RecordBatchReader | None = own.to_reader(max_chunksize=50)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        assert self._reader is not None, "it was read twice"
        reader, self._reader = self._reader, None
        return reader.__arrow_c_stream__(requested_schema)


class OneBatch:
    """What has nothing but ``__arrow_c_array__``."""

    def __init__(self, own: pa.Table) -> None:
        (self._batch,) = own.combine_chunks().to_batches()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def coded(own: pa.Table) -> pa.Table:
    return own.set_column(1, "item", own["item"].dictionary_encode())


def in_runs(own: pa.Table) -> pa.Table:
    return own.set_column(1, "item", pc.run_end_encode(own["item"]))


FRAMES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "table": lambda own, _: own,
    "batch": lambda own, _: own.combine_chunks().to_batches()[0],
    "reader": lambda own, _: own.to_reader(max_chunksize=7),
    "dataset": lambda own, folder: ds.dataset(parquet(own, folder)),
    "scanner": lambda own, folder: ds.dataset(parquet(own, folder)).scanner(),
    "dictionary": lambda own, _: coded(own),
    "run-end encoded": lambda own, _: in_runs(own),
    "path": parquet,
    "text": lambda own, folder: str(parquet(own, folder)),
    "pandas": lambda own, _: own.to_pandas(),
    "pandas index": lambda own, _: own.to_pandas().set_index("at"),
    "pandas two indexes": lambda own, _: own.to_pandas().set_index(["at", "item"]),
    "pandas categories": lambda own, _: coded(own).to_pandas(),
    "polars": lambda own, _: pl.from_arrow(own),
    "polars lazy": lambda own, _: pl.from_arrow(own).lazy(),
    "polars categories": lambda own, _: pl.from_arrow(coded(own)),
    "capsule": lambda own, _: Capsule(own),
    "array": lambda own, _: OneBatch(own),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_rows_of_its_table(
    name: str, expected: pa.Table, tmp_path: Path
) -> None:
    sides = [FRAMES[name](own, tmp_path) for own in (LEFT, RIGHT)]
    found = winnow.replay(*sides, window="30s", **JOIN, **BUDGET)
    assert found.outputs.num_rows > 0
    for column in ("left_row", "right_row", "importance", "weight"):
        assert found.outputs[column].equals(expected[column]), column
    assert found.outputs["ts"].type == pa.timestamp("us", ZONE)
    assert found.outputs["ts"].equals(expected["ts"])
    for side in ("left", "right"):
        assert found.outputs[f"{side}_at"].equals(expected[f"{side}_at"])
        texts = found.outputs[f"{side}_item"].cast(pa.string()).to_pylist()
        assert texts == expected[f"{side}_item"].to_pylist()


@pytest.mark.parametrize(
    "values",
    [[3, 1, None], [True, False, None], pd.to_datetime(["2024-05-02", "2024-05-01", None])],
)
def test_categories_are_of_any_type_and_lose_their_order(values: Any) -> None:
    cells = pd.Categorical(values, ordered=True)
    frame = pd.DataFrame({"at": [1, 2, 3], "item": cells, "size": cells})
    found = winnow.replay(frame, frame, on="item", time="at", window=9)
    kept = found.to_pandas()["left_size"]
    assert kept.tolist() == list(cells[:2])
    assert not kept.cat.ordered  # or the first to come would be the least
    several = winnow.multijoin({"a": frame, "b": frame}, predicate="equi:item", time="at", window=9)
    assert several.to_pandas()["b_size"].tolist() == list(cells[:2])


def test_frames_of_two_kinds_join_and_a_fact_may_be_a_third(tmp_path: Path) -> None:
    fact = pd.DataFrame({"a": ["a", "b"], "b": ["b", "a"]})
    sides = FRAMES["path"](LEFT, tmp_path), pl.from_arrow(RIGHT)
    own = {"fact_left": "a", "fact_right": "b", "window": "30s", "policy": "prob", "memory": 20}
    found = winnow.replay(*sides, fact=fact, **JOIN, **own)
    plain = winnow.replay(LEFT, RIGHT, fact=pa.table(fact), **JOIN, **own)
    assert found.outputs.num_rows > 0
    assert found.outputs["right_row"].equals(plain.outputs["right_row"])


def test_a_duckdb_relation_is_a_frame(expected: pa.Table) -> None:
    left, right = LEFT, RIGHT
    with duckdb.connect() as connection:
        sides = [connection.from_arrow(own) for own in (left, right)]
        found = winnow.replay(*sides, window="30s", **JOIN, **BUDGET)
    assert found.outputs["left_row"].equals(expected["left_row"])


def test_a_pandas_index_that_only_numbers_rows_is_no_column() -> None:
    frame = LEFT.to_pandas()
    found = winnow.replay(frame, frame.set_axis(list(range(ROWS))), window=0, **JOIN)
    assert not [name for name in found.outputs.column_names if "index" in name]
    for chosen in (frame[::2], frame[5:], frame[::-1], frame[frame["v"] > frame["v"].median()]):
        labels = winnow.replay(frame, chosen, window=0, **JOIN).outputs
        rows = labels["right_row"].to_numpy()
        assert labels["right_index"].to_pylist() == chosen.index[rows].to_list() != []
    named = winnow.replay(frame.set_axis(frame["v"].rename(None)), frame, window=0, **JOIN)
    assert "left_index" in named.outputs.column_names


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (3, "left is a int, which is neither a path nor a frame"),
        ([1, 2], "left is a list, which is neither a path nor a frame"),
        ("", "left is empty: give a path"),
        ({"a": LEFT}, r"left is a dict: .*winnow\.multijoin, .* winnow\.replay_streams"),
        (
            pd.DataFrame({"at": [1, "x"], "item": [1, 2]}),
            "left is a pandas.*one type that Arrow has",
        ),
    ],
)
def test_what_is_no_frame_is_said(frame: Any, said: str) -> None:
    with pytest.raises((InputError, SpecError), match=said):
        winnow.replay(frame, RIGHT, window={"a": 1}, **JOIN)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", [winnow.multijoin, winnow.explain])
def test_streams_without_names_are_refused(task: Callable[..., Any]) -> None:
    said = "streams is a list: give a mapping of names to streams, such as {'a'"
    with pytest.raises(SpecError, match=said):
        task([LEFT, RIGHT], predicate="equi:item", time="at", window="30s")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"predicate": "equi:v"},
            r"^column v of stream r \(double\): floating-point numbers are no",
        ),
        (
            {"predicate": "equi:hour"},
            r"^column hour of stream l \(time64\[us\]\): such columns can",
        ),
        ({"predicate": "equi:at,v"}, r"^column v of stream r \(double\): floating-point numbers"),
        ({"predicate": "equi:zz"}, r"^stream l has no column 'zz': it has at, item, v"),
        ({"importance": "item"}, "^stream l: importance column item has type string: it must be"),
    ],
)
def test_errors_name_streams_as_their_user_does(given: dict[str, str], said: str) -> None:
    hour = pa.array([None] * ROWS, pa.time64("us"))
    streams = {name: LEFT.append_column("hour", hour) for name in ("l", "r")}
    streams["l"] = streams["l"].set_column(2, "v", LEFT["v"].cast(pa.int64()))
    with pytest.raises(InputError, match=said):
        winnow.multijoin(streams, **{"predicate": "equi:item", "time": "at", "window": 1, **given})
    with pytest.raises(InputError, match=r"^the left frame has no column 'zz'"):
        winnow.replay(LEFT, RIGHT, **JOIN | {"on": "zz"}, window="30s")


def test_an_unknown_policy_is_told_those_of_the_function() -> None:
    with pytest.raises(SpecError, match="there is no policy 'lru'; choose one of rand,") as found:
        winnow.replay(LEFT, RIGHT, **JOIN, window="30s", memory=4, policy="lru")
    assert "bottom-k" not in str(found.value)
    with pytest.raises(SpecError, match=r"use winnow\.sample with method bottom-k$"):
        winnow.replay(LEFT, RIGHT, **JOIN, window="30s", memory=4, policy="bottom_k")


@pytest.mark.parametrize(
    ("window", "ticks"),
    [
        (timedelta(seconds=30), 30_000_000),
        (timedelta(milliseconds=1500), 1_500_000),
        (pd.Timedelta("90s"), 90_000_000),
        (timedelta(0), 0),
    ],
)
def test_a_window_may_be_a_timedelta(window: timedelta, ticks: int) -> None:
    assert winnow.replay(LEFT, RIGHT, window=window, **JOIN).report.window.left == ticks
    swept = winnow.sweep(LEFT, RIGHT, window=[window], policy="prob", memory=4, **JOIN)
    assert swept.outputs["window_left"].to_pylist() == [ticks]
    streams = {"l": LEFT, "r": RIGHT}
    joined = winnow.multijoin(streams, predicate="equi:item", time="at", window={"": window})
    assert joined.report.window.l == ticks


def test_keywords_of_spark_are_refused_for_other_frames() -> None:
    with pytest.raises(SpecError, match="row is of Spark DataFrames"):
        winnow.replay(LEFT, RIGHT, window="30s", row="v", **JOIN)
    with pytest.raises(SpecError, match="fact_row is of Spark DataFrames"):
        winnow.lookup(LEFT, RIGHT, on="item", time="at", fact_row="v")


def test_a_window_finer_than_a_tick_is_refused_as_text_is() -> None:
    with pytest.raises(SpecError, match="window 1001ns of stream left is not a whole number"):
        winnow.replay(LEFT, RIGHT, window=pd.Timedelta(1001, "ns"), **JOIN)


def everything(folder: Path) -> dict[str, Callable[[], Result]]:
    """Return a small run of every task."""
    two = {"window": "30s", **JOIN}
    return {
        "replay": lambda: winnow.replay(LEFT, RIGHT, **two, **BUDGET),
        "sweep": lambda: winnow.sweep(LEFT, RIGHT, **two, policy="prob,simp", memory="20%,50%"),
        "bound": lambda: winnow.bound(LEFT, RIGHT, **two, memory=10),
        "sample": lambda: winnow.sample(
            LEFT, RIGHT, **two, memory=20, aggregates="count(*) every 5min"
        ),
        "profile": lambda: winnow.profile(LEFT, RIGHT, **two, memory=10),
        "multijoin": lambda: winnow.multijoin(
            {"l": LEFT, "r": RIGHT}, predicate="equi:item", time="at", window="30s"
        ),
        "replay_streams": lambda: winnow.replay_streams(
            {"l": LEFT, "m": RIGHT.to_pandas(), "r": parquet(RIGHT, folder)},
            pl.DataFrame({name: ["a", "b"] for name in "lmr"}),
            on="item", time="at", importance="v", window={"l": "20s", "": "30s"}, memory=30,
        ),
        "lookup": lambda: winnow.lookup(
            LEFT, pa.table({"item": ["a"], "x": [1]}), on="item", time="at"
        ),
        "allocate": lambda: winnow.allocate(
            {
                "memory": "50%",
                "join": [
                    {
                        "name": name, "left": str(parquet(LEFT, folder)),
                        "right": str(parquet(RIGHT, folder)), "on": "item", "time": "at",
                        "window": "30s", "policy": "prob",
                    }
                    for name in ("one", "two")
                ],
            },
            cache=folder / "lanes",
        ),
        "estimate": lambda: winnow.estimate(
            parquet(LEFT, folder), parquet(RIGHT, folder), on="item", time="at", window="2s",
            aggregates=["count", "avg(left.v) every 5min"],
        ),
        "explain": lambda: winnow.explain(
            rates=[10, 1, 1, 3], windows="100,100,200,100", distinct=[500, 50, 40, 5]
        ),
        "generate": lambda: winnow.generate("zipf", rows=20, domain=3, seed=1),
    }  # fmt: skip


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_task_gives_one_kind_of_result(task: str, tmp_path: Path) -> None:
    found = everything(tmp_path)[task]()
    assert isinstance(found, winnow.Result)
    assert isinstance(found.outputs, pa.Table)
    assert found.outputs.num_rows > 0
    assert isinstance(found.report, dict)
    name, value = next(iter(found.report.items()))
    assert getattr(found.report, name) == value
    assert len(found.to_pandas()) == found.to_polars().height == found.outputs.num_rows
    assert pa.table(found).equals(found.outputs)
    assert pl.DataFrame(found).columns == found.outputs.column_names
    assert len(str(found)) > 20
    shown = found._repr_html_()
    assert shown.startswith("<div")
    assert found.outputs.column_names[0] in shown
    page = checked(found.html(tmp_path / "page.html").read_text())
    assert page.tags["figure"] > 0
    assert f"winnow.{task}(" in "".join(page.texts["span"])
    place = tmp_path / "plot.svg"
    found.plot().savefig(place)
    assert place.stat().st_size > 1000


def test_the_tasks_are_those_of_the_facade() -> None:
    assert (
        TASKS
        | {"ArrivalProfile", "Result", "WinnowError", "__version__", "register_theta", "spark"}
        == set(winnow.__all__)
        == set(dir(winnow))
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert winnow.__version__ == project["version"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = winnow.nothing  # type: ignore[attr-defined]


def test_times_stay_times_in_what_other_tasks_give(tmp_path: Path) -> None:
    two = {"window": "30s", **JOIN}
    kind = pa.timestamp("us", ZONE)
    assert winnow.bound(LEFT, RIGHT, memory=10, **two).outputs["until_ts"].type == kind
    sample = winnow.sample(LEFT, RIGHT, memory=20, aggregates="count(*) every 5min", **two)
    (table,) = sample.aggregates.values()
    assert table["window_begin"].type == table["window_end"].type == kind
    assert sample.outputs["ts"].type == kind
    paths = parquet(LEFT, tmp_path), parquet(RIGHT, tmp_path)
    estimate = winnow.estimate(*paths, aggregates="count every 5min", **two)
    (table,) = estimate.aggregates.values()
    assert table["window_begin"].type == table["window_end"].type == kind
    assert (
        sum(table["estimate"].to_pylist()) == winnow.replay(LEFT, RIGHT, **two).report.exact.outputs
    )
    seconds = LEFT.set_column(0, "at", LEFT["at"].cast(pa.timestamp("s", ZONE)))
    found = winnow.replay(seconds, seconds, **two)
    assert found.outputs["ts"].type == pa.timestamp("s", ZONE)
    assert found.report.window == {"left": 30, "right": 30, "tick": "s", "zone": ZONE}
    days = LEFT.set_column(0, "at", LEFT["at"].cast(pa.timestamp("us")).cast(pa.date32()))
    dated = winnow.replay(days, days, **(two | {"window": timedelta(days=1)}))
    assert dated.outputs["ts"].type == pa.date32()
    plain = LEFT.set_column(0, "at", LEFT["at"].cast(pa.int64()))
    assert winnow.replay(plain, plain, **(two | {"window": 9})).outputs["ts"].type == pa.int64()


def test_outputs_go_to_a_folder_that_was_named_and_are_read_from_there(tmp_path: Path) -> None:
    place = tmp_path / "out"
    two = {"window": "30s", **JOIN}
    found = winnow.replay(LEFT, RIGHT, out=place, **two, **BUDGET)
    assert found.report.out == str(place)
    assert found.outputs.num_rows == pq.read_table(place).num_rows > 0
    streams = winnow.multijoin(
        {"l": LEFT, "r": RIGHT}, predicate="equi:item", time="at", window="30s",
        out=tmp_path / "joined",
    )  # fmt: skip
    assert streams.outputs["ts"].type == pa.timestamp("us", ZONE)
    looked = winnow.lookup(
        LEFT, pa.table({"item": ["a"]}), on="item", time="at", out=tmp_path / "looked"
    )
    assert looked.outputs["ts"].type == pa.timestamp("us", ZONE)


def test_a_temporary_folder_goes_with_its_result() -> None:
    found = winnow.replay(LEFT, RIGHT, window="30s", **JOIN, **BUDGET)
    home = found._rows.place.parent  # type: ignore[union-attr]  # noqa: SLF001 - it has no public name
    assert home.is_dir()
    del found
    assert not home.exists()


def test_rejected_rows_come_along(tmp_path: Path) -> None:
    bad = LEFT.set_column(2, "v", pa.array([-1.0, *LEFT["v"].to_pylist()[1:]]))
    for left in (bad, parquet(bad, tmp_path)):
        found = winnow.replay(left, RIGHT, window="30s", bad_rows="quarantine", **JOIN)
        assert list(found.rejected) == ["left"]
        assert found.rejected["left"]["row"].to_pylist() == [0]
    out = tmp_path / "out"
    found = winnow.replay(bad, RIGHT, window="30s", bad_rows="quarantine", out=str(out), **JOIN)
    assert pq.read_table(out / "_rejected").equals(found.rejected["left"])


def test_a_field_that_the_report_lacks_is_told_with_the_next() -> None:
    with pytest.raises(AttributeError, match=r"no field 'recal'. Did you mean 'recall'\?"):
        _ = Fields({"recall": 1.0}).recal


def test_a_plot_that_is_none_is_said() -> None:
    found = winnow.replay(LEFT, RIGHT, window="30s", reference="none", **JOIN, **BUDGET)
    assert [axis.get_title(loc="left") for axis in found.plot().axes] == [
        "Memory that the exact join needs over time", "Memory",
    ]  # fmt: skip
    swept = winnow.sweep(LEFT, RIGHT, window="30s", policy="prob", memory=4, **JOIN)
    with pytest.raises(SpecError, match="plot is 'recal'; choose one of"):
        swept.plot("recal")
    with pytest.raises(SpecError, match="plots 'recall', 'outputs' are several: give one name"):
        swept.plot("recall", "outputs")
    with pytest.raises(SpecError, match=r"plot is 'zzz'; the result of replay has one figure"):
        found.plot("zzz")
    sampled = winnow.sample(LEFT, RIGHT, window="30s", memory=4, **JOIN)
    with pytest.raises(SpecError, match=r"plot is 'zzz'; the result of sample has one figure"):
        sampled.plot("zzz")


@pytest.mark.parametrize(
    "module", ["winnow", *(f"engine.api.{own}" for own in ("pairs", "tasks", "result", "sampled"))]
)
def test_examples_are_right(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0
    assert found.attempted


def run(program: str) -> str:
    """Run a program in a Python of its own and return what it prints."""
    return subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def test_importing_winnow_loads_nothing_and_pandas_and_polars_are_not_needed() -> None:
    shown = run(
        "import sys, winnow\n"
        "print(*{name.partition('.')[0] for name in sys.modules} & "
        "{'numba', 'numpy', 'pandas', 'polars', 'pyarrow', 'pyspark', 'rich'}, 'light')\n"
    )
    assert shown.split() == ["light"]
    shown = run(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'pandas', 'polars', 'pyspark', 'cupy'}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import pyarrow as pa, winnow\n"
        "own = pa.table({'t': [0, 1], 'k': [1, 1]})\n"
        "found = winnow.replay(own, own, on='k', time='t', window=1)\n"
        "print(found.outputs.num_rows)\n"
        "try:\n    found.to_polars()\n"
        "except winnow.WinnowError as error:\n    print(error)\n"
    )
    assert shown.splitlines() == ["4", "polars is not installed: pip install polars"]


SCRIPT = """
from datetime import timedelta
import winnow

found = winnow.replay("left.parquet", "right.parquet", on="key", time="ts",
                      window=timedelta(minutes=1), memory="10%", policy="dgl")
recall: float = found.report.recall
print(found, found.outputs, found.to_pandas(), winnow.__version__)
swept = winnow.sweep("left.parquet", "right.parquet", on="key", time="ts", window=[10, 20],
                     policy=["prob", "simp"], memory="10%")
print(swept.advice, swept.plot("recall"))
WRONG
"""


LINES = {
    "right": ("", ""),
    "keyword": ('winnow.replay("l", "r", windw=3)', 'Unexpected keyword argument "windw"'),
    "archive": (
        'winnow.replay("l", 3, window=3)', 'Argument 2 to "replay" has incompatible type "int"',
    ),
    "result": ("found.outpts", '"Result" has no attribute "outpts"'),
    "function": ("winnow.estimat", 'Module has no attribute "estimat"'),
}  # fmt: skip


def test_a_users_script_is_checked_by_its_types(tmp_path: Path) -> None:
    """All at once and with the cache of `make check`: mypy reads much before it checks one."""
    scripts = []
    for name, (line, _) in LINES.items():
        script = tmp_path / f"script_{name}.py"
        script.write_text(SCRIPT.replace("WRONG", line))
        scripts.append(str(script))
    program = (
        "from mypy import api\n"
        f"out, _, status = api.run(['--config-file', '{ROOT}/pyproject.toml', *{scripts}])\n"
        "print(out)\n"
    )
    errors = [shown for shown in run(program).splitlines() if "error:" in shown]
    for name, (_, said) in LINES.items():
        own = [shown for shown in errors if f"script_{name}.py" in shown]
        assert len(own) == bool(said), own
        assert all(said in shown for shown in own)


TOTALS: dict[str, Any] = {"window": "30s", "aggregates": "count every 5min", "within": "5%"}


@pytest.mark.parametrize("name", FRAMES)
def test_an_estimate_of_every_frame_is_that_of_its_file(name: str, tmp_path: Path) -> None:
    shuffled = [own.take(np.random.default_rng(3).permutation(ROWS)) for own in (LEFT, RIGHT)]
    if name in ("path", "text"):
        shuffled = [LEFT, RIGHT]  # files are refused that are not in order of time
    sides = [FRAMES[name](own, tmp_path) for own in shuffled]
    found = winnow.estimate(*sides, on="item", time="at", **TOTALS)
    assert found.outputs["window_begin"].type == pa.timestamp("us", ZONE)
    assert sum(found.outputs["estimate"].to_pylist()) == exact_outputs("30s")
    assert found.report.window.zone == ZONE
    several = winnow.estimate({"a": sides[0] if name in ("path", "text", "table", "pandas")
                               else LEFT, "b": RIGHT},
                              predicate="equi:item", time="at", **TOTALS)  # fmt: skip
    assert sum(several.outputs["estimate"].to_pylist()) == exact_outputs("30s")


def exact_outputs(window: str) -> int:
    return int(winnow.replay(LEFT, RIGHT, on="item", time="at", window=window).outputs.num_rows)


def test_whole_seconds_are_ticks_in_estimates_and_allocations() -> None:
    sides = [
        own.set_column(0, "at", own["at"].cast(pa.timestamp("s", ZONE))) for own in (LEFT, RIGHT)
    ]
    found = winnow.estimate(*sides, on="item", time="at", window=30, aggregates="count every 1min")
    assert sum(found.outputs["estimate"].to_pylist()) == exact_outputs("30s")
    assert found.outputs["window_begin"].type == pa.timestamp("s", ZONE)
    join = {"left": sides[0], "right": sides[1], "on": "item", "time": "at"}
    in_ticks, in_text = (
        winnow.allocate({"memory": 20, "join": [join | {"window": own}]}) for own in (30, "30s")
    )
    assert in_ticks.outputs.equals(in_text.outputs)


def counted(found: Any) -> float:
    """Return the outputs of a replay or a bound, or those that are estimated."""
    exact = found.report["exact"]
    return float(exact["outputs"] if "outputs" in exact else found.outputs["estimate"][0].as_py())


@pytest.mark.parametrize("task", ["replay", "bound", "estimate", "several"])
def test_a_start_without_an_offset_is_of_the_times_zone_in_seconds_too(task: str) -> None:
    found = []
    for unit in ("us", "s"):
        sides = [
            own.set_column(0, "at", own["at"].cast(pa.timestamp(unit, ZONE)))
            for own in (LEFT, RIGHT)
        ]
        given: dict[str, Any] = {"time": "at", "window": "30s", "start_ts": "2024-05-01T00:05"}
        if task == "several":
            streams = dict(zip("ab", sides, strict=True))
            found.append(
                winnow.estimate(streams, **given, predicate="equi:item", aggregates="count")
            )
            continue
        more = {"bound": {"memory": 20}, "estimate": {"aggregates": "count"}}.get(task, {})
        found.append(getattr(winnow, task)(*sides, **given, **more, on="item"))
    assert 0 < counted(found[0]) == counted(found[1]) < exact_outputs("30s")


@pytest.mark.filterwarnings("ignore:the exact join of left")
def test_a_join_that_begins_after_its_streams_end_is_empty() -> None:
    given: dict[str, Any] = {**JOIN, "window": "30s", "start_ts": "2024-05-02"}
    found = winnow.estimate(LEFT, RIGHT, **given, aggregates=["count", "avg(importance)"])
    [line] = found.outputs.to_pylist()
    assert [line[name] for name in ("estimate", "low", "high")] == [0, 0, 0]
    [line] = found.aggregates["avg(importance)"].to_pylist()
    assert line["estimate"] is None or line["estimate"] != line["estimate"]
    assert winnow.replay(LEFT, RIGHT, **given).report["exact"]["outputs"] == 0


def test_a_stream_s_name_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(SpecError, match=r"\.\./up"):
        winnow.estimate({"../up": LEFT, "b": RIGHT}, predicate="equi:item", time="at", **TOTALS)
    assert not list(tmp_path.iterdir())


def test_only_times_of_arrival_are_plain_numbers_where_they_are_seconds() -> None:
    day = pa.array([1_714_521_600] * ROWS).cast(pa.timestamp("s"))
    sides = [
        own.set_column(0, "at", own["at"].cast(pa.timestamp("s", ZONE))).append_column("day", day)
        for own in (LEFT, RIGHT)
    ]
    found = winnow.estimate(*sides, on="item", time="at", window=30, aggregates="count by left.day")
    kinds = [field.type for field in found.outputs.schema if "day" in field.name]
    assert len(kinds) == 1
    assert pa.types.is_timestamp(kinds[0])
    assert found.outputs["estimate"].to_pylist() == [exact_outputs("30s")]


def test_an_allocation_takes_frames_as_files(tmp_path: Path) -> None:
    kinds = ("path", "table"), ("pandas", "polars"), ("text", "path"), ("reader", "capsule")
    found = []
    for left, right in kinds:
        sides = {"left": FRAMES[left](LEFT, tmp_path), "right": FRAMES[right](RIGHT, tmp_path)}
        joins = [
            {"name": name, "on": "item", "time": "at", "window": window} | sides
            for name, window in (("short", "10s"), ("long", "40s"))
        ]
        if len(found) > 1:
            joins = joins[:1]  # what can be read once
        found.append(winnow.allocate({"memory": 30, "join": joins}).outputs.to_pylist())
    assert found[0] == found[1]
    assert len(found[0]) == 2
    assert found[2] == found[3]
    assert found[2][0]["memory"] > 0


def test_files_that_say_differently_whether_a_column_has_nulls(tmp_path: Path) -> None:
    folders = []
    for side, own in (("left", LEFT), ("right", RIGHT)):
        folders.append(tmp_path / side)
        folders[-1].mkdir()
        for part in range(3):
            rows = own.slice(part * ROWS // 3, ROWS // 3)
            kinds = [field.with_nullable(part != 1) for field in rows.schema]
            pq.write_table(rows.cast(pa.schema(kinds)), folders[-1] / f"{part}.parquet")
    two: dict[str, Any] = {"on": "item", "time": "at", "window": "30s"}
    rows = winnow.replay(*folders, **two).outputs.num_rows
    assert winnow.estimate(*folders, aggregates="sum(left.v)", **two).outputs.num_rows == 1
    streams = dict(zip("ab", folders, strict=True))
    of = winnow.multijoin(streams, predicate="equi:item", time="at", window="30s")
    assert of.outputs.num_rows == rows > 0
    looked = winnow.lookup(*folders, on="item", time="at", fact_on="item")
    whole = winnow.lookup(LEFT.slice(0, 3 * (ROWS // 3)), RIGHT.slice(0, 3 * (ROWS // 3)),
                          on="item", time="at", fact_on="item")  # fmt: skip
    assert looked.report.matched == whole.report.matched > 0


def test_streams_are_named_by_text() -> None:
    one = pa.table({"t": [1], "k": [1]})
    join = {"time": "t", "window": 1}
    tasks: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (winnow.multijoin, {"predicate": "equi:k"}),
        (winnow.estimate, {"predicate": "equi:k"}),
        (winnow.replay_streams, {"fact": one, "on": "k"}),
    ]
    for task, more in tasks:
        with pytest.raises(SpecError, match="1 is no name for a stream: give text"):
            task({1: one, "b": one}, **join, **more)


@pytest.mark.parametrize("zone", ["+02:00", "-05:30", "Europe/Berlin", None])
def test_times_with_an_offset_are_in_utc_in_polars(zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    own = pa.table({"k": [1, 2], "t": pa.array([10**6, 2 * 10**6], kind)})
    found = winnow.replay(own, own, on="k", time="t", window="0s")
    frame = found.to_polars()
    named = zone if zone is None or zone[0].isalpha() else "UTC"
    for name in ("ts", "left_t", "right_t"):
        assert frame.schema[name] == pl.Datetime("us", named)
        assert frame[name].dt.epoch("us").to_list() == [10**6, 2 * 10**6]
    assert found.outputs.schema.field("ts").type == kind


def test_dictionaries_may_hold_nulls_and_differ_from_batch_to_batch(tmp_path: Path) -> None:
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(own, pa.int32()), pa.array(words))
        for own, words in (([0, 1, 2, None, 1], ["a", None, "b"]), ([1, 0], ["c", "a"]))
    ]
    coded_rows = pa.table({"t": range(7), "k": pa.chunked_array(parts)})
    plain = coded_rows.set_column(1, "k", coded_rows["k"].cast(pa.string()))
    for number, part in enumerate((coded_rows[:5], coded_rows[5:])):
        whole = part.set_column(1, "k", plain["k"].slice(5 * number, 5).dictionary_encode())
        pq.write_table(whole, tmp_path / f"{number}.parquet")
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 9}
    expected = winnow.replay(plain, plain, **join).outputs
    assert expected.num_rows == 6
    for frame in (lambda: coded_rows, coded_rows.to_reader, lambda: ds.dataset(tmp_path)):
        found = winnow.replay(frame(), frame(), **join).outputs
        assert found["left_row"] == expected["left_row"]
        assert found["left_k"].type == coded_rows["k"].type
        assert found["left_k"].cast(pa.string()) == expected["left_k"]


def test_several_values_may_be_an_array_or_a_column() -> None:
    grid: dict[str, Any] = {"memory": [2, 4], "policies": ["prob", "simp"], "seeds": [1]}
    windows = [timedelta(seconds=30), timedelta(seconds=60)]

    def recall(make: Callable[[Any], Any]) -> list[float]:
        given = {name: make(own) for name, own in grid.items()} | {"windows": make(windows)}
        found = winnow.sweep(LEFT, RIGHT, **JOIN, **given)
        return found.outputs["recall"].to_pylist()  # type: ignore[no-any-return]

    for make in (np.array, pd.Series, pl.Series, pa.array, lambda own: pa.chunked_array([own])):
        assert recall(make) == recall(list)
    names: Any = pd.Index(["item", "v"])
    with pytest.raises(SpecError, match=r"(?s)^on is .*; give a name, or several"):
        winnow.replay(LEFT, RIGHT, on=names.to_frame(), time="at", window="30s")
    found = winnow.estimate(LEFT, RIGHT, on=names[:1], time="at", window="30s", seed=2,
                            aggregates=np.array(["count", "sum(left.v)"]))  # fmt: skip
    assert [*found.aggregates] == ["count", "sum(left.v)"]
