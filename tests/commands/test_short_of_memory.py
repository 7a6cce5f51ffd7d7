"""A command that the system gives too little says so, and leaves nothing."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import arguments, streams
from pyarrow.csv import write_csv

from engine.archives.source import open_archive
from engine.commands import main
from engine.jobs import frame
from engine.lanes.stored import lanes_read
from engine.runtime.errors import InputError
from engine.runtime.storage import reading


@pytest.mark.parametrize("said", ["Unable to allocate 6.00 MiB", ""])
def test_too_little_memory_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    def short(*_: Any, **__: Any) -> None:
        raise MemoryError(*filter(None, [said]))

    streams(tmp_path)
    monkeypatch.setattr(frame, "prepare_cached", short)
    assert main(arguments(tmp_path)) == 2
    told = f"there is too little memory{f' ({said})' if said else ''}: free some, or give the"
    assert f"winnow replay: error: {told} process more" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= {"left.parquet", "right.parquet", "cache"}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_too_little_memory_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Arrow's error of too little memory is one of its own as well, as those of damage are."""

    def short(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    path = tmp_path / f"left.{ending}"
    (write_csv if ending == "csv" else pq.write_table)(pa.table({"t": [1], "k": [1]}), path)
    monkeypatch.setattr(reading, "parquet_now" if ending == "parquet" else "text_file", short)
    with pytest.raises(MemoryError, match="malloc"):
        open_archive(str(path), "left")


@pytest.mark.parametrize("limit", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    def short(*_: Any, **__: Any) -> None:
        raise OSError(limit, "Too many open files")

    path = tmp_path / "left.parquet"
    pq.write_table(pa.table({"t": [1], "k": [1]}), path)
    message = r"^prepared lanes: .*too many are open: allow"
    with pytest.raises(InputError, match=message), lanes_read(path):
        short()
    monkeypatch.setattr(reading, "parquet_now", short)
    with pytest.raises(InputError, match=r"left archive: .*too many are open: allow .*ulimit -n"):
        open_archive(str(path), "left")
