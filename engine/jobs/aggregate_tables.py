"""The tables of aggregates in a folder of their own, as Parquet and CSV."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as pc

from engine.archives.families import family
from engine.jobs.output import Output, write_file
from engine.runtime.columns import replaced


def write_tables(output: Output, tables: Sequence[pa.Table]) -> dict[str, int]:
    """Write each aggregate as ``aggregate-N.parquet`` and ``.csv``; return the rows of each."""
    rows = {}
    for number, table in enumerate(tables, start=1):
        name = f"aggregate-{number}.parquet"
        write_file(output.draft / name, table)
        pc.write_csv(_as_text(table), output.whole / f"aggregate-{number}.csv")
        rows[name] = table.num_rows
    return rows


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table with UUIDs, and columns of bytes some of which are no text, as text has them.

    Of bytes that is hexadecimal digits.
    """
    found = {}
    for place, column in enumerate(table.columns):
        if family(column.type) != "binary":
            continue
        values = column.to_pylist()
        if column.type == pa.uuid():
            texts = [None if one is None else str(one) for one in values]
        elif all(one is None or _is_text(one) for one in values):
            continue
        else:
            texts = [None if one is None else one.hex() for one in values]
        found[place] = pa.array(texts, pa.string())
    return replaced(table, found)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
