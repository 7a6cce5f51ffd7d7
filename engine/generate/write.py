"""Writing generated streams to a folder: in pieces, whole files or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from engine.generate.source import ROW_GROUP_ROWS, StreamSource, check_name
from engine.runtime.errors import OutputError

FORMATS = ("parquet", "csv")


def write_streams(
    folder: Path,
    sources: Mapping[str, StreamSource],
    file_format: str = "parquet",
    *,
    overwrite: bool = False,
) -> dict[Path, int]:
    """Write each source to ``folder/NAME.FORMAT``.

    Every file is written under a temporary name; all are renamed once all are complete. A row
    group has 2**16 rows, and no more than one batch of rows is held, so memory does not grow with
    the rows. The bytes depend on the sources and the version of pyarrow alone.

    Parameters
    ----------
    folder : Path
        Created if missing.
    sources : mapping of str to StreamSource
        Streams by file name, without its suffix.
    file_format : str
        ``parquet`` or ``csv`` (with a header line).
    overwrite : bool
        Write into a folder that has files. Files of the same names are replaced, others are left.

    Returns
    -------
    dict of Path to int
        Rows written to each file.

    Raises
    ------
    SpecError
        If the format is not known.
    OutputError
        If the folder has files and `overwrite` is off, or it cannot be written.
    """
    check_name("format", file_format, FORMATS)
    folder = Path(folder)
    finished: list[tuple[Path, Path]] = []
    written = {}
    try:
        _prepare(folder, overwrite=overwrite)
        for name, source in sources.items():
            target = folder / f"{name}.{file_format}"
            temporary = folder / f".{name}.{file_format}.{os.getpid()}.tmp"
            finished.append((temporary, target))
            written[target] = _write(temporary, source, file_format)
        for temporary, target in finished:
            temporary.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"folder {folder} cannot be written: {error}; free the place or give another folder"
        ) from error
    finally:
        for temporary, _ in finished:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    return written


def _prepare(folder: Path, *, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file, not a folder: give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    present = sorted(entry.name for entry in folder.iterdir())
    if present and not overwrite:
        raise OutputError(
            f"folder {folder} has {len(present)} entries, {present[0]} among them: give an empty "
            "folder, or --overwrite to replace files of the same name"
        )


def _write(path: Path, source: StreamSource, file_format: str) -> int:
    rows = 0
    with path.open("wb") as sink, _writer(sink, source.schema, file_format) as writer:
        for batch in source.batches(ROW_GROUP_ROWS):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _writer(
    sink: BinaryIO, schema: pa.Schema, file_format: str
) -> pyarrow.csv.CSVWriter | pq.ParquetWriter:
    if file_format == "csv":
        return pyarrow.csv.CSVWriter(sink, schema)
    # Sequences have no repeats for a dictionary to find, and looking for them costs time.
    repeating = [name for name in schema.names if name in ("key", "importance")]
    return pq.ParquetWriter(sink, schema, use_dictionary=repeating)
