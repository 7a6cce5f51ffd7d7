"""Runs that write to one place in an object store: one commits, and what others left goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from storage_cases import BUCKET, Store, needs_store, served

from engine.jobs.output import write_file
from engine.jobs.output_at import output_at
from engine.runtime.errors import OutputError
from engine.runtime.storage.disk import lease_mark
from engine.runtime.storage.listing import files_at
from engine.runtime.storage.run_folders import OWNER, close_run, late_withdrawn
from engine.runtime.storage.uploads import write_bytes
from engine.runtime.storage.uris import Uri

pytest.importorskip("obstore", reason="obstore is not installed: make extras")
pytestmark = needs_store
TABLE = pa.table({"ts": pa.array([3, 5], pa.int64())})


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with served() as running:
        yield running


def place(store: Store, name: str) -> Uri:
    return Uri(f"s3://{BUCKET}/{name}", tuple(store.options.items()))


def test_of_two_runs_one_commits(store: Store) -> None:
    uri = place(store, "two")
    with output_at(uri) as first, output_at(uri) as second:
        assert first is not None
        assert second is not None
        for own in (first, second):
            write_file(own.draft / "part-00000.a.parquet", TABLE)
        first.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        first.commit()
        second.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        with pytest.raises(OutputError, match="appeared while the job ran"):
            second.commit()
    (file,) = files_at(uri)
    assert file.parent == first.draft
    assert len(store.keys("two")) == 3  # manifest, part and _SUCCESS


def test_runs_that_ended_are_removed_and_others_stay(store: Store, tmp_path: Path) -> None:
    uri, marks = place(store, "left-over"), {"a": lease_mark(), "b": "other-host boot pid:[1] 7 9"}
    ended = lease_mark().rsplit(" ", 2)[0] + " 4194303 1"
    for name, mark in (marks | {"c": ended, "d": None}).items():
        (tmp_path / "x").write_bytes((mark or "").encode())
        store.put(tmp_path / "x", f"left-over/run-{name * 32}/part-00000.x.parquet")
        if mark is not None:
            store.put(tmp_path / "x", f"left-over/run-{name * 32}/{OWNER}")
    with output_at(uri) as output:
        assert output is not None
        output.assemble({}, TABLE.schema)
        output.commit()
        runs = {key.partition("/")[0] for key in store.keys("left-over")} - {"_manifest.json"}
        assert runs == {f"run-{'a' * 32}", f"run-{'b' * 32}", output.draft.name}


def test_a_run_that_was_taken_for_left_over_commits_nothing(store: Store) -> None:
    with output_at(place(store, "gone")) as output:
        assert output is not None
        store.remove(f"gone/{output.draft.name}")
        output.assemble({}, TABLE.schema)
        with pytest.raises(OutputError, match=f"{output.draft} is closed"):
            output.commit()


def test_a_part_that_comes_late_is_taken_back(store: Store) -> None:
    """Its task looks whether the run is open, before it puts and afterwards."""
    with output_at(place(store, "late")) as output:
        assert output is not None
        write_file(output.draft / "part-00000.a.parquet", TABLE)
        output.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        output.commit()
        whole = store.keys("late")
        store.writes()
        with pytest.raises(OutputError, match="is closed: another attempt was taken"):
            write_file(output.draft / "part-00000.b.parquet", TABLE)
        assert store.writes() == []
        assert store.keys("late") == whole


@pytest.mark.parametrize("kept", [[], ["part-00000.b.parquet"]])
def test_a_run_that_is_closed_while_a_part_is_put(store: Store, kept: list[str]) -> None:
    """Who closes it lists its parts once the mark is gone; a task looks for the mark at its end."""
    with output_at(place(store, "closing")) as output:
        assert output is not None
        first, second = (output.draft / f"part-00000.{name}.parquet" for name in "ab")

        def closed_meanwhile() -> None:
            with late_withdrawn(second):
                write_bytes(second, b"")
                store.reads()
                close_run(output.draft, kept)
                asked.extend(query.partition("=")[0] for _, _, query in store.reads() if query)
                write_bytes(second, b"late")

        asked: list[str] = []
        write_bytes(first, b"of an attempt that failed")
        with pytest.raises(OutputError, match="is closed"):
            closed_meanwhile()
        assert asked[:2] == ["delete", "list-type"]
        assert store.keys("closing") == []
