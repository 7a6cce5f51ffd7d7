"""Archives in an object store give what the same archives on a disk give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from storage_cases import BUCKET, GROUP, SECRET, Store, needs_store, put, served, write

import winnow
from engine.archives.finding import stored_bytes
from engine.commands import main
from engine.runtime.errors import InputError
from engine.runtime.storage.uris import Uri, storing

pytestmark = needs_store
ROLES: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 50}
WORDS = ["--on", "k", "--time", "t", "--importance", "i", "--window", "50", "--memory", "20"]
WORDS += ["--policy", "prob", "--engine", "local"]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with served() as running:
        yield running


def plain(result: Any) -> dict[str, Any]:
    """Return the report of a job's result."""
    found: dict[str, Any] = getattr(result, "report", result)
    return found


def both(store: Store, folder: Path, **how: Any) -> tuple[str, str]:
    """Write archives, and return where they are on the disk and in the store."""
    write(folder, **how)
    return str(folder), put(store, folder, folder.name)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl.gz", "feather"])
@pytest.mark.parametrize("job", ["replay", "sample"])
def test_rows_are_those_of_files(store: Store, tmp_path: Path, job: str, kind: str) -> None:
    places = both(store, tmp_path / f"{job}-{kind}", kind=kind)
    budget = {"policy": "prob", "memory": 20}
    options = ROLES | (budget if job == "replay" else {"fraction": 0.3})
    run = winnow.replay if job == "replay" else winnow.sample
    reports, outputs = [], []
    for at, place in enumerate(places):
        out = tmp_path / f"out-{at}"
        reports.append(
            run(
                f"{place}/left", f"{place}/right/*.{kind}", **options, out=out,
                cache=tmp_path / f"cache-{at}", storage_option=store.options,
            )
        )  # fmt: skip
        outputs.append(pq.read_table(out))
    assert outputs[1].num_rows > 100
    assert outputs[0].equals(outputs[1])
    own = {"seconds", "tuples_per_second", "out"}
    first, second = ({n: r[n] for n in r if n not in own} for r in map(plain, reports))
    assert first == second


def test_sizes_are_those_of_files(store: Store, tmp_path: Path) -> None:
    folder, uri = both(store, tmp_path / "sized", parts=2)
    with storing(store.options):
        sizes = [
            stored_bytes([f"{place}/left", f"{place}/right/*.parquet", f"{place}/none"])
            for place in (folder, uri)
        ]
    files = (own.stat().st_size for own in Path(folder).rglob("*.parquet"))
    assert sizes == [sum(files)] * 2


def test_look_ups_are_those_of_files(store: Store, tmp_path: Path) -> None:
    places = both(store, tmp_path / "lookup")
    found = []
    for at, place in enumerate(places):
        out = tmp_path / f"looked-{at}"
        winnow.lookup(
            f"{place}/left", f"{place}/right", on="k", fact_on="k", time="t", out=out,
            storage_option=store.options,
        )  # fmt: skip
        found.append(pq.read_table(out))
    assert found[0].num_rows > 100
    assert found[0].equals(found[1])


def test_only_columns_and_row_groups_that_are_needed_are_fetched(
    store: Store, tmp_path: Path
) -> None:
    folder, uri = both(store, tmp_path / "large", number=20 * GROUP, parts=2)
    store.fetched()
    winnow.replay(
        f"{uri}/left", f"{uri}/right", **ROLES, memory=20, policy="prob", columns="ids",
        cache=tmp_path / "cache", storage_option=store.options,
    )  # fmt: skip
    assert store.fetched() <= 1.1 * column_bytes(folder, ("t", "k", "i"))


def test_an_estimate_fetches_the_row_groups_of_its_stretches(store: Store, tmp_path: Path) -> None:
    folder, uri = both(store, tmp_path / "stretches", number=400_000, parts=1, group=1_000)
    found = []
    for place in (folder, uri):
        store.fetched()
        found.append(
            winnow.estimate(
                f"{place}/left", f"{place}/right", on="k", time="t", importance="i", window=50,
                storage_option=store.options, within="5%",
            )
        )  # fmt: skip
    assert found[0].aggregates == found[1].aggregates
    share = found[1].report["read"]["share"]
    assert share < 0.5
    assert 0 < store.fetched() < (share + 0.2) * column_bytes(folder, ("t", "k", "i"))


def column_bytes(folder: str, columns: tuple[str, ...]) -> int:
    """Return what columns of all files below a folder take."""
    found = 0
    for path in Path(folder).rglob("*.parquet"):
        footer = pq.read_metadata(path)
        for group in (footer.row_group(i) for i in range(footer.num_row_groups)):
            own = (group.column(i) for i in range(group.num_columns))
            found += sum(c.total_compressed_size for c in own if c.path_in_schema in columns)
    return found


def test_lanes_are_found_again_until_an_object_changes(store: Store, tmp_path: Path) -> None:
    _, uri = both(store, tmp_path / "again")
    cache = tmp_path / "cache"

    def replayed() -> int:
        store.fetched()
        winnow.replay(
            f"{uri}/left", f"{uri}/right", **ROLES, memory=20, policy="prob", cache=cache,
            storage_option=store.options,
        )  # fmt: skip
        return store.fetched()

    assert replayed() > 0
    assert replayed() == 0  # footers and lanes are known
    table = pq.read_table(tmp_path / "again/left/0.parquet")
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), tmp_path / "0.parquet")
    store.put(tmp_path / "0.parquet", "again/left/0.parquet")
    assert replayed() > 0
    assert len([own for own in cache.iterdir() if own.is_dir()]) == 2


def test_no_secret_is_written_anywhere(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, uri = both(store, tmp_path / "kept")
    job = tmp_path / "job" / "job.toml"
    job.parent.mkdir()
    named = "\n".join(f'{name} = "{own}"' for name, own in store.options.items())
    job.write_text(f"[storage-option]\n{named}\n")
    home = tmp_path / "home"
    for how in (store.words(), ["--job", str(job)]):
        number = str(len(list(home.glob("*.json"))))
        words = ["--report", str(home / f"{number}.json"), "--html", str(home / f"{number}.html")]
        words += ["--out", str(home / number), "--cache", str(home / "cache")]
        status = main(
            ["replay", "--left", f"{uri}/left", "--right", f"{uri}/right", *WORDS, *words, *how]
        )
        assert status == 0
        assert main(["report", str(home / number)]) == 0
    told = "".join(capsys.readouterr())
    texts = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert len(texts) > 10
    assert not any(SECRET.encode() in text for text in (*texts, told.encode()))
    asked = json.loads((home / "0" / "_report.json").read_text())["request"]
    assert "secret_key=..." in asked["line"]
    assert f"endpoint_override={store.options['endpoint_override']}" in asked["line"]


@pytest.mark.parametrize(
    ("changed", "path", "words"),
    [
        ({"access_key": "unknown"}, "", "check the credentials"),
        ({"region": "eu-north-1"}, "", "give the bucket's region by --storage-option region=NAME"),
        (
            {"endpoint_override": "http://127.0.0.1:9"},
            "",
            "check the network, and --storage-option",
        ),
        ({}, "s3://no-such-bucket/left", "is not there: check the bucket and the path"),
        ({}, f"s3://{BUCKET}/*.parquet", "no file matches"),
        ({"secret_key": ""}, "", "--storage-option secret_key has no value; write NAME=VALUE"),
        ({"scheme": "q", "endpoint_override": "127.0.0.1:9"}, "", "check"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    store: Store, capsys: pytest.CaptureFixture[str], changed: dict[str, str], path: str, words: str
) -> None:
    uri = path or f"s3://{BUCKET}/left"
    status = main(["replay", "--left", uri, "--right", uri, *WORDS, *store.words(**changed)])
    told = capsys.readouterr().err.strip().splitlines()
    assert status == 2
    assert words in told[-1]
    assert told[-1].startswith("winnow replay: error: ")
    assert SECRET not in "".join(told)
    assert not any("Traceback" in line for line in told)


def test_an_object_that_is_no_parquet_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no more than that PAR1" * 9)
    uri = store.put(tmp_path / "a.parquet", "broken/a.parquet")
    with pytest.raises(InputError, match=f"{uri} is corrupt, truncated or no Parquet"):
        winnow.replay(uri, uri, **ROLES, memory=2, storage_option=store.options)


def test_a_plan_may_be_in_the_store(store: Store, tmp_path: Path) -> None:
    folder, uri = both(store, tmp_path / "planned", number=1_000)
    winnow.bound(
        f"{folder}/left", f"{folder}/right", **ROLES, memory=20, out=tmp_path / "plan",
        cache=tmp_path / "cache",
    )  # fmt: skip
    put(store, tmp_path / "plan", "planned/plan")
    found = [
        winnow.replay(
            f"{uri}/left", f"{uri}/right", **ROLES, memory=20, plan=plan, cache=tmp_path / "cache",
            storage_option=store.options,
        ).report["result"]
        for plan in (str(tmp_path / "plan"), f"{uri}/plan")
    ]  # fmt: skip
    assert found[0] == found[1]


def test_files_at_a_pattern(store: Store, tmp_path: Path) -> None:
    from engine.runtime.storage.listing import files_at  # noqa: PLC0415 - beside what it tests

    (tmp_path / "a").write_text("a")
    for key in ("day=1/a.csv", "day=1/b.csv", "day=2/deep/a.csv", "day=2/_x/a.csv", ".c/a.csv"):
        store.put(tmp_path / "a", f"glob/{key}")
    with storing(store.options):
        for pattern, wanted in {
            "": ["day=1/a.csv", "day=1/b.csv", "day=2/deep/a.csv"],
            "/": ["day=1/a.csv", "day=1/b.csv", "day=2/deep/a.csv"],
            "/day=1/a.csv": ["day=1/a.csv"],
            "/*/a.csv": ["day=1/a.csv"],
            "/**/a.csv": ["day=1/a.csv", "day=2/deep/a.csv"],
            "/day=[2-9]": ["day=2/deep/a.csv"],
            "/day=?/?.csv": ["day=1/a.csv", "day=1/b.csv"],
        }.items():
            found = files_at(Uri(f"s3://{BUCKET}/glob{pattern}"))
            assert [own.removeprefix(f"s3://{BUCKET}/glob/") for own in found] == wanted, pattern


def test_folders_hold_columns_and_are_listed_once(store: Store, tmp_path: Path) -> None:
    files = 70
    for side in ("left", "right"):
        for at in range(files):
            own = tmp_path / "hive" / side / f"day={at % 7}" / f"{at}.parquet"
            own.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"t": [at, at], "k": [1, 2]}), own)
    uri = put(store, tmp_path / "hive", "hive")
    store.reads()
    found = []
    for at, place in enumerate((tmp_path / "hive", uri)):
        winnow.replay(
            f"{place}/left", f"{place}/right", on=["k", "day"], time="t", window=9, memory=8,
            policy="rand", out=tmp_path / f"hive-{at}", cache=tmp_path / "cache",
            storage_option=store.options,
        )  # fmt: skip
        found.append(pq.read_table(tmp_path / f"hive-{at}"))
    assert found[0].num_rows > 50
    assert found[0].equals(found[1])
    assert set(found[1]["left_day"].to_pylist()) == set(range(7))
    requests = store.reads()
    lists = [query for _, _, query in requests if "prefix=hive" in query and "list-type" in query]
    assert sum("continuation" not in query for query in lists) <= 4  # is it there, and what is
    of_files = Counter((method, path) for method, path, _ in requests if path.endswith(".parquet"))
    # Looked at when found, read by a task, and compared at the end; the footer and the rows.
    assert of_files == {
        (method, f"/{BUCKET}/hive/{side}/day={at % 7}/{at}.parquet"): count
        for method, count in (("HEAD", 3), ("GET", 2))
        for side in ("left", "right")
        for at in range(files)
    }


def test_a_table_of_delta_lake_is_refused(store: Store, tmp_path: Path) -> None:
    write(tmp_path / "delta")
    (tmp_path / "delta" / "left" / "_delta_log").mkdir()
    (tmp_path / "delta" / "left" / "_delta_log" / "0.json").write_text("{}")
    uri = put(store, tmp_path / "delta", "delta")
    with pytest.raises(InputError, match="delta/left is a table of Delta Lake"):
        winnow.replay(
            f"{uri}/left", f"{uri}/right", **ROLES, memory=20, policy="prob", cache=tmp_path,
            storage_option=store.options,
        )  # fmt: skip
