"""Bad input of multi-way joins: what is wrong, where, what to do, and nothing is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES

import engine
from engine.commands import main
from engine.jobs.multijoin import task
from engine.runtime.errors import InputError, SpecError
from winnow import multijoin

SHED = {"throttle": 0.5, "basic_window": 2, "adapt_every": 5}
PACED = {"capacity": 5, "basic_window": 2, "adapt_every": 5}
TWO = ["a=x.parquet", "b=y.parquet"]


def unknown_name(a: Any, b: Any) -> Any:
    """Call what there is not; of a predicate that cannot be compiled."""
    return nowhere(a, b)  # type: ignore[name-defined]  # noqa: F821 - what is wrong


def second(a: Any, b: Any) -> Any:
    """Compare second attributes; of a predicate that has one."""
    return a[1] == b[1]


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no predicate": ({"predicate": None}, r"--predicate is missing"),
    "kind": ({"predicate": "bnd:v:1"}, r"predicate 'bnd' is not known.*Did you mean 'band'\?"),
    "no bound": ({"predicate": "band:v"}, r"--predicate is 'band:v'; write band:COL:EPS"),
    "no number": ({"predicate": "band:v:x"}, r"--predicate is 'band:v:x'; write band:COL:EPS"),
    "two bands": ({"predicate": "band:v,x:1"}, r"predicate band has 2 columns: write band:COL"),
    "less than 0": ({"predicate": "band:v:-1"}, r"bound -1.0 of predicate band must be 0 or more"),
    "band of infinity": ({"predicate": "band:v:inf"}, r"bound inf of predicate band .* finite"),
    "band beside": (
        {"predicate": "equi:k,band:v:1"},
        r"is 'equi:k,band:v:1': equi goes beside .* write equi:COL,distance:COL:R",
    ),
    "function beside": ({"predicate": "equi:k,theta:f:v"}, r"equi goes beside cosine, inner, and"),
    "nan": ({"predicate": "distance:x,y:nan"}, r"bound nan of predicate distance must be"),
    "zero": ({"predicate": "inner:tags:0"}, r"bound 0 .* without a common item.* more than 0"),
    "two predicates": (
        {"predicate": ["equi:k", "band:v:1"]},
        r"--predicate has 2 values.* on one predicate.* equi:COL,distance:COL:R",
    ),
    "no column": ({"predicate": "equi:"}, r"--predicate is 'equi:'; write equi:COL"),
    "empty column": ({"predicate": "distance::1"}, r"; write distance:COL,COL:R"),
    "function": ({"predicate": "theta:f:v"}, r"no function is registered as 'f' .* register it"),
    "module": ({"predicate": "theta:nowhere:f:v"}, r"No module named 'nowhere'; give a module"),
    "attribute": ({"predicate": "theta:math:f:v"}, r"has no attribute 'f'; give a module"),
    "no callable": ({"predicate": "theta:math:pi:v"}, r"math:pi is no function"),
    "compiled": (
        {"predicate": "theta:test_multijoin_bad_input:unknown_name:v"},
        r"unknown_name of predicate theta\S+ cannot be compiled .*: give a function of two",
    ),
    "built in": ({"predicate": "theta:math:hypot:v"}, r"math:hypot of .* be compiled \(no sig"),
    "no module": ({"predicate": "theta::f:v"}, r"'theta::f:v': Empty module name; give a module"),
    "beyond": (
        {"predicate": "theta:test_multijoin_bad_input:second:v"},
        r"second of predicate theta\S+ reads an attribute that it .* \(index 1 .*columns",
    ),
    "missing": ({"predicate": "equi:key"}, r"stream a \S+ has no column 'key': it has t, at"),
    "close": ({"predicate": "equi:wrd"}, r"has no column 'wrd'.* Did you mean 'word'\?"),
    "floats": ({"predicate": "equi:v"}, r"column v of stream a \(double\).* floating-point"),
    "kinds": (
        {"predicate": "equi:k", "column": "c.k=word"},
        r"column k of stream a \(int64\) and column word of stream c \(string\): they",
    ),
    "zones": (
        {"predicate": "equi:zoned", "column": "b.zoned=moment"},
        r"zoned of stream a .*moment of stream b .*: only one of them has a time zone: give",
    ),
    "text": ({"predicate": "band:word:1"}, r"word of stream a has type string: predicate ba"),
    "lists": ({"predicate": "inner:k:1"}, r"k of stream a has type int64: predicate inner"),
    "items": (
        {"predicate": "inner:tags:1", "column": "c.tags=ids"},
        r"column tags of stream a \(list.*column ids of stream c.*not of one kind",
    ),
    "cosine": ({"predicate": "cosine:f32:1.5"}, r"bound 1.5 of predicate cosine must be from -1"),
    "cosines": ({"predicate": "cosine:f32,f64:1"}, r"cosine has 2 columns: write cosine:COL:T"),
    "sets": ({"predicate": "cosine:ids:1"}, r"ids of stream a .*large_list.*: predicate cosine"),
    "vectors and sets": (
        {"predicate": "inner:f32:1", "column": "b.f32=ids"},
        r"column ids of stream b has type large_list.*: predicate inner takes fixed-size",
    ),
    "keyed band": ({"predicate": "equi:k,inner:tags:1"}, r"equi goes beside cosine, .* leave it"),
    "floats beside": ({"predicate": "equi:v,cosine:f32:1"}, r"column v of stream a .*floating"),
    "top": ({"predicate": "cosine:f32:1", "top": 0}, r"--top is 0; it must be 1 or more"),
    "top of bands": ({"predicate": "band:v:1", "top": 2}, r"--top 2 asks for .* band:v:1 has none"),
    "top of cliques": ({"predicate": "cosine:f32:1", "top": 2}, r"--top 2 is.*give --join-graph"),
    "top of loops": ({"method": "eager-nlj", "top": 2}, r"--top 2 is of exact joins by --method"),
    "top of load": (SHED | {"top": 2}, r"--top 2 is of exact joins by --method auto: leave it out"),
    "column form": ({"column": "b.k"}, r"--column is 'b.k'; write NAME.COL=ITS"),
    "column stream": ({"column": "d.k=small"}, r"columns are given for stream 'd'; the streams"),
    "column name": ({"column": "b.kk=small"}, r"given for 'b.kk'; .* attributes are k. Did you"),
    "column twice": ({"column": ["b.k=small"] * 2}, r"--column b.k is given more than once"),
    "its column": ({"column": "b.k=smal"}, r"stream b \S+ has no column 'smal'.*Did you mean"),
    "one stream": ({"stream": "a=x", "window": 5}, r"1 stream is given: a multi-way join ta"),
    "nine": ({"stream": [f"s{at}=x" for at in range(9)], "window": 5}, r"9 streams are given"),
    "stream form": ({"stream": "a.parquet"}, r"--stream is 'a.parquet'; write NAME=PATH"),
    "stream twice": ({"stream": ["a=x", "a=y"]}, r"--stream a is given more than once"),
    "name": ({"stream": ["a-b=x", "c=y"], "window": 3}, r"'a-b' is no name for a stream"),
    "reserved": ({"stream": ["ts=x", "c=y"], "window": 3}, r"'ts' is no name for a stream: .*none"),
    "of reports": ({"stream": ["total=x", "c=y"], "window": 3}, r"'total' is no name for a stream"),
    "nothing": ({"stream": TWO, "window": 3}, r"the a archive: nothing is at x.parquet"),
    "no time": ({"time": None}, r"time of stream a is missing: give it for all or for it"),
    "half a time": ({"time": "a=t,b=t"}, r"time of stream c is missing"),
    "time": ({"time": "ts"}, r"stream a \S+ has no column 'ts'"),
    "time type": ({"time": "word"}, r"time column word has type string: it must be an integer"),
    "times": ({"time": "at,a=t"}, r"time column t of stream a .* and at of stream b .*: they are"),
    "two times": ({"time": "t,at,a=t"}, r"--time has more than one value for all streams"),
    "importance": ({"importance": "imp"}, r"stream a \S+ has no column 'imp'"),
    "text weight": ({"importance": "word"}, r"importance column word has type string: it must be"),
    "whose": ({"importance": "d=i"}, r"importance is given for stream 'd'; the streams are a, b"),
    "no window": ({"window": None}, r"window of stream a is missing"),
    "negative": ({"window": -5}, r"window -5 of stream a must be 0 ticks or more"),
    "duration": ({"window": "10min"}, r"window 10min of stream a is a duration, but .* plain"),
    "soon": ({"window": "soon"}, r"window 'soon' of stream a is neither a number of ticks nor"),
    "part": ({"window": "1.5"}, r"window 1.5 of stream a is not a whole number of ticks"),
    "rows": ({"window": "rows:x"}, r"'rows:x' of stream a is no number of tuples: write rows:100"),
    "rows -1": ({"window": "5,b=rows:-1"}, r"'rows:-1' of stream b is no number of tuples"),
    "graph": ({"join_graph": "circle"}, r"--join-graph is 'circle'; choose one of clique, star"),
    "combine": ({"combine": "prod"}, r"--combine is 'prod'.*Did you mean 'product'\?"),
    "start": ({"start_ts": "2024-05-01"}, r"--start-ts is '2024-05-01', but time is a plain"),
    "columns": ({"columns": "id"}, r"--columns is 'id'.*Did you mean 'ids'\?"),
    "bad rows": ({"bad_rows": "keep"}, r"--bad-rows is 'keep'; choose one of error, quarantine"),
    "device": ({"device": "tpu"}, r"--device is 'tpu'; choose one of auto, cpu, gpu"),
    "gpu": ({"device": "gpu"}, r"--device is 'gpu': exact multi-way joins run on the CPU"),
    "gpu index": (
        {"device": "gpu", "probe": "index", "throttle": 0.5, "basic_window": 2, "adapt_every": 5},
        r"--device is 'gpu': indexes are probed on the CPU.*or --probe scan",
    ),
    "seed": ({"seed": 2**70}, r"--seed is 1180591620717411303424; it must fit 64 bits"),
    "engine": ({"engine": "locl"}, r"--engine is 'locl'.*Did you mean 'local'\?"),
    "slices": ({"slices": 0}, r"--slices is 0; it must be 1 or more"),
    "slices of one": ({"slices": 2, "method": "eager-nlj"}, r"--slices cut joins by --method auto"),
    "method": ({"method": "egr-nlj"}, r"--method is 'egr-nlj'.*Did you mean 'eager-nlj'\?"),
    "order": ({"order": "a,b"}, r"--order a,b must name each of the streams a, b, c once"),
    "order name": ({"order": "a,b,d"}, r"there is no stream 'd'; the streams are a, b, c"),
    "order of none": ({"order": "a,b,c"}, r"--order is of P3's algorithms .* name another method"),
    "tau": ({"tau": 5}, r"--tau is of P3's algorithms, and --method is auto: name one of naive"),
    "expire": ({"expire_every": 5}, r"--expire-every is of P3's algorithms, and --method is auto"),
    "buckets": ({"buckets": 5}, r"--buckets is of P3's algorithms, and --method is auto"),
    "no tau": ({"method": "lazy-nlj"}, r"--method lazy-nlj needs --tau, .*1 tick or more"),
    "eager tau": ({"method": "eager-nlj", "tau": 5}, r"--tau 5 is of lazy methods, and eager-nlj"),
    "tau 0": ({"method": "lazy-nlj", "tau": 0}, r"--tau 0 must be 1 tick or more"),
    "tau word": ({"method": "lazy-nlj", "tau": "often"}, r"--tau 'often' is neither a number of"),
    "tau time": ({"method": "lazy-nlj", "tau": "5s"}, r"--tau 5s is a duration, .* a number"),
    "too often": (
        {"method": "lazy-nlj", "tau": 5, "expire_every": 3},
        r"--expire-every 3 must be 5 ticks \(--tau\) or more",
    ),
    "hash": (
        {"method": "eager-hash", "predicate": "band:v:1"},
        r"--method eager-hash hashes equal attributes, and the predicate is band:v:1: choose equi",
    ),
    "scanned": ({"method": "eager-nlj", "buckets": 5}, r"--buckets are of hash joins, and --m"),
    "no buckets": ({"method": "eager-hash", "buckets": 0}, r"--buckets 0 must be 1 or more"),
    "most buckets": (
        {"method": "hybrid", "buckets": "a=999999999999"},
        r"--buckets a=999999999999 take too much memory: give at most 16,777,216",
    ),
    "bucket": ({"method": "hybrid", "buckets": "a=x"}, r"buckets are .*; give whole numbers"),
    "whose buckets": ({"method": "hybrid", "buckets": "d=3"}, r"there is no stream 'd'"),
    "both": ({**SHED, "method": "eager-nlj"}, r"--method eager-nlj is exact, and a capacity or"),
    "z": (SHED | {"throttle": 1.5}, r"--throttle 1.5 must be more than 0 and at most 1"),
    "capacity": (SHED | {"throttle": None, "capacity": -1}, r"--capacity -1.0 must be more than"),
    "no capacity": (SHED | {"throttle": None, "capacity": 1e-200}, r"--capacity 1e-200 is so lit"),
    "clock": (SHED | {"clock": "sun"}, r"--clock is 'sun'; choose one of virtual, wall"),
    "wall": (SHED | {"clock": "wall"}, r"--clock wall measures the capacity, and one, or a thr"),
    "idle buffer": (SHED | {"buffer": 3}, r"--buffer has no effect, since no tuple waits"),
    "idle boost": (
        SHED | {"boost": 2, "capacity": 5}, r"--boost has no effect, since --throttle fixes z",
    ),
    "idle optimiser": (
        SHED | {"throttle": None, "capacity": 5, "shedding": "random-drop", "optimiser": "greedy"},
        r"--optimiser has no effect, since --shedding random-drop reads whole windows, .* out$",
    ),
    "idle throttle": (
        SHED | {"capacity": 5, "shedding": "random-drop"},
        r"--throttle has no effect, since --shedding random-drop reads whole windows, .* out$",
    ),
    "idle metric": (
        SHED | {"metric": "best-output"}, r"--metric has no effect, .* --optimiser is exact",
    ),
    "no shedding": ({"buffer": 3}, r"buffer is of joins that shed load, and this one sheds none"),
    "no segments": (SHED | {"basic_window": None}, r"--basic-window is missing: a harvested join"),
    "no interval": (SHED | {"adapt_every": None}, r"--adapt-every is missing: a harvested join"),
    "segments": (
        SHED | {"basic_window": 1, "window": "9,b=70000"},
        r"--basic-window 1 cuts the window of stream b into 70,000 basic windows, and 65,535 are",
    ),
    "rooms by a float": ({"partition_by": "v"}, r"\(double\).* not compared for equality: cast"),
    "segment": (SHED | {"basic_window": 0}, r"--basic-window 0 must be 1 tick or more"),
    "segment time": (SHED | {"basic_window": "2 s"}, r"--basic-window 2 s is a duration, but"),
    "interval": (SHED | {"adapt_every": "x"}, r"--adapt-every 'x' is neither a number"),
    "buffer": (PACED | {"buffer": 0}, r"--buffer 0 must be 1 or more"),
    "boost": (PACED | {"boost": 0.5}, r"--boost 0.5 must be 1 or more and finite"),
    "shred": (SHED | {"shred": 2}, r"--shred 2.0 must be from 0 to 1"),
    "forget": (SHED | {"forget": -1}, r"--forget -1.0 must be from 0 to 1"),
    "second": (SHED | {"per_second": 0}, r"--per-second 0.0 must be more than 0 and finite"),
    "shedding": (SHED | {"shedding": "random"}, r"--shedding is 'random'; .*'random-drop'"),
    "drop": (SHED | {"shedding": "random-drop"}, r"--shedding random-drop keeps to a capacity"),
    "admission": (SHED | {"admission": "some"}, r"--admission is 'some'; choose one of all, con"),
    "optimiser": (SHED | {"optimiser": "gredy"}, r"--optimiser is 'gredy'.*Did you mean 'greedy'"),
    "metric": (SHED | {"metric": "best"}, r"--metric is 'best'; choose one of best-output"),
    "reference": (SHED | {"reference": "no"}, r"--reference is 'no'; choose one of exact, none"),
    "exact": ({"reference": "none"}, r"--reference none leaves .*and this join is exact: leave it"),
    "tuples": (SHED | {"window": "rows:500000"}, r"count-based windows cannot be harvested"),
}  # fmt: skip


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cases.write(tmp_path_factory.mktemp("archives"), cases.streams(0))


def everything(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


class Refused:
    """Runs joins that must be refused and leave everything as it was."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, folder: Path, pattern: str, **options: Any) -> None:
        """Run one."""
        before = everything(folder)
        assert main(cases.words(folder, **options)) == 2
        shown, said = self._capsys.readouterr()
        assert shown == ""
        assert said.startswith("winnow multijoin: error: ")
        assert said.count("\n") == 1, said
        assert re.search(pattern, said), said
        assert everything(folder) == before


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    return Refused(capsys)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_mean_nothing(archives: Path, refused: Refused, name: str) -> None:
    options, pattern = OPTIONS[name]
    refused(archives, pattern, **options)


@pytest.mark.parametrize(
    ("word", "pattern"),
    [
        ("--slices=x", "--slices is 'x'; give a whole number"),
        ("--windw=3", r"there is no option --windw\. Did you mean --window"),
        ("--capacity=much", "--capacity is 'much'; give a number"),
        ("--seed=1.5", "--seed is '1.5'; give a whole number"),
    ],
)
def test_words_that_are_none_of_an_option(
    archives: Path, capsys: pytest.CaptureFixture[str], word: str, pattern: str
) -> None:
    assert main([*cases.words(archives), word]) == 2
    assert re.search(pattern, capsys.readouterr().err)


def test_places_that_cannot_be_written(tmp_path: Path, refused: Refused) -> None:
    cases.write(tmp_path, cases.streams(0))
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    refused(tmp_path, r"output folder \S+folder exists: remove it", out=tmp_path / "folder")
    refused(tmp_path, r"output folder \S+ cannot be made", out=tmp_path / "file" / "out")
    refused(tmp_path, r"report \S+folder is a folder", report=tmp_path / "folder")


def test_job_files(tmp_path: Path, refused: Refused) -> None:
    cases.write(tmp_path, cases.streams(0))
    job = tmp_path / "job.toml"
    for content, pattern in (
        ('predicat = "equi:k"', r"unknown option 'predicat'. Did you mean 'predicate'\?"),
        ("predicate = ", r"job.toml is no TOML"),
        ("stream = 3", "--stream is 3; write NAME=PATH"),
        ("slices = true", "--slices is True; give a whole number"),
        ('slices = "x"', r"--slices is 'x'; give a whole number"),
        ('capacity = "much"', r"--capacity is 'much'; give a number"),
        ("tau = 5", r"--tau is of P3's algorithms"),
    ):
        job.write_text(content)
        refused(tmp_path, pattern, job=job)


FAULTS = {
    "null time": ("t", {3: None, 7: None}, r"column t: 2 rows are null \(rows 3, 7\)"),
    "far time": ("t", {2: 2**62}, r"column t: 1 row is beyond 2\^62 ticks \(row 2\)"),
    "negative": ("i", {8: -0.5}, r"column i: 1 row is negative \(row 8\)"),
    "NaN": ("i", {1: float("nan"), 0: None}, r"1 row is null \(row 0\);.* 1 row is NaN \(row 1\)"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("predicate", ["int", "band"])
def test_bad_rows(tmp_path: Path, refused: Refused, name: str, predicate: str) -> None:
    column, cells, pattern = FAULTS[name]
    tables = cases.streams(0)
    values = tables["b"].column(column).to_pylist()
    for row, cell in cells.items():
        values[row] = cell
    at = tables["b"].column_names.index(column)
    tables["b"] = tables["b"].set_column(at, column, pa.array(values))
    cases.write(tmp_path, tables)
    for options in ({}, {"slices": 3}, {"out": tmp_path / "new" / "out"}, {"method": "eager-nlj"}):
        given = {"predicate": CASES[predicate].predicate} | options
        refused(tmp_path, rf"file \S*b\.parquet: .*{pattern}.*--bad-rows quarantine", **given)


@pytest.mark.parametrize("options", [{}, {"method": "eager-nlj"}, {"memory": 9}, SHED])
def test_importances_whose_product_no_float_holds(
    tmp_path: Path, refused: Refused, options: dict[str, Any]
) -> None:
    tables = {
        name: own.set_column(own.column_names.index("i"), "i", pa.array([1e100] * len(own)))
        for name, own in cases.streams(0).items()
    }
    cases.write(tmp_path, tables)
    four = [f"{name}={tmp_path}/{name[0]}.parquet" for name in ("a", "b", "c", "a2")]
    given: dict[str, Any] = {"stream": four, "window": 9} | options
    pattern = (
        r"importances .*1e\+100 of a, .*1e\+100 of a2\) multiply to more than 1e\+200, .*: scale"
    )
    refused(tmp_path, pattern, **given, combine="product")
    assert main(cases.words(tmp_path, **given, combine="max")) == 0


def test_damaged_archives(tmp_path: Path, refused: Refused) -> None:
    cases.write(tmp_path, cases.streams(0))
    raw = (tmp_path / "b.parquet").read_bytes()
    for content in (raw[:-30], b"", b"PAR1", raw[100:]):
        (tmp_path / "b.parquet").write_bytes(content)
        refused(tmp_path, r"b archive: file \S+b.parquet is corrupt, truncated or no Parquet")
    damaged = bytearray(raw)
    damaged[4:900] = b"\xff" * 896
    (tmp_path / "b.parquet").write_bytes(damaged)
    refused(tmp_path, r"b.parquet is corrupt")


def test_names_that_would_meet_in_the_output(tmp_path: Path, refused: Refused) -> None:
    tables = cases.streams(0)
    tables["a"] = tables["a"].append_column("row", tables["a"].column("t"))
    cases.write(tmp_path, tables)
    refused(tmp_path, r"2 columns of the output would be called a_row: .*--columns ids")
    assert main(cases.words(tmp_path, columns="ids")) == 0


def test_vectors_of_no_width(tmp_path: Path, refused: Refused) -> None:
    def vectors(*widths: int) -> pa.Array:
        return pa.array([[0.5] * own for own in widths], pa.list_(pa.float32()))

    tables = {name: pa.table({"t": [1, 2], "i": [1.0, 1.0], "v": vectors(3, 3)}) for name in "abc"}
    for cells, pattern in (
        (vectors(3, 4), r"column v has vectors of 3 and of 4 numbers: they must be of one length"),
        (vectors(1, 1), r"column v has vectors of 1 numbers: give 2 to 4096"),
        (
            vectors(5, 5),
            r"vectors of stream a have 3 numbers, and of stream b 5: they must be",
        ),
        (
            pa.array([[0.5] * 4097] * 2, pa.list_(pa.float32(), 4097)),
            r"v of stream b .* of 4097 numb",
        ),
    ):
        cases.write(tmp_path, tables | {"b": tables["b"].set_column(2, "v", cells)})
        refused(tmp_path, pattern, predicate="cosine:v:0.5")


class FailingError(Exception):
    """A failure that is nobody's fault."""


@pytest.mark.parametrize("where", ["join_streams", "set_aside", "commit"])
def test_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise FailingError

    cases.write(tmp_path, cases.streams(0))
    before = everything(tmp_path)
    if where == "commit":
        monkeypatch.setattr(engine.jobs.output.Output, "commit", fail)
    else:
        monkeypatch.setattr(
            task if where == "set_aside" else engine.jobs.multijoin.run, where, fail
        )
    with pytest.raises(FailingError):
        main(cases.words(tmp_path, out=tmp_path / "new" / "out", slices=2))
    assert everything(tmp_path) == before


def test_python_refuses_what_is_no_join() -> None:
    tables = cases.streams(0)
    given: dict[str, Any] = {"predicate": "equi:k", "time": "t", "window": 3}
    with pytest.raises(InputError, match=r"^stream a has no column 'ts'"):
        multijoin(tables, **(given | {"time": "ts"}))
    with pytest.raises(InputError, match=r"column x of stream a: 3 rows are null \(rows 1, 2, 7\)"):
        multijoin(tables, **(given | {"time": "x"}))
    with pytest.raises(SpecError, match="predicate is missing: give one"):
        multijoin(tables, time="t", window=3)
    with pytest.raises(SpecError, match=r"predicate is a function: register it, as in winnow\.reg"):
        multijoin(tables, **(given | {"predicate": lambda a, b: a < b}))
    with pytest.raises(SpecError, match=r"^buckets are \{'a': 2\.5\}; give whole numbers"):
        multijoin(tables, **given, method="hybrid", buckets={"a": 2.5})  # type: ignore[dict-item]
    with pytest.raises(SpecError, match="window is given for stream 'd'"):
        multijoin(tables, **(given | {"window": {"d": 3}}))
    with pytest.raises(SpecError, match="1 is no name for a stream: give text"):
        multijoin({1: tables["a"], "b": tables["b"]}, **given)  # type: ignore[dict-item]
    twice = pa.Table.from_arrays([tables["a"].column("k")] * 2, ["k", "k"])
    with pytest.raises(InputError, match="a table has more than one column k: rename one"):
        multijoin(tables | {"a": twice}, **given)


def test_a_changing_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases.write(tmp_path, cases.streams(0))
    true = engine.jobs.multijoin.run.times_of

    def late(*args: Any) -> Any:
        pq.write_table(cases.drawn(99, 40), tmp_path / "c.parquet")
        return true(*args)

    monkeypatch.setattr(engine.jobs.multijoin.run, "times_of", late)
    assert main(cases.words(tmp_path)) == 2
    assert not (tmp_path / "out").exists()
