"""The fact relation beside the lanes: where its attributes' tuples go, and the facts themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.archives.canonical import LANE_SEED, codes
from engine.archives.normalise import Normalised
from engine.archives.source import Archive
from engine.facts.index import FactIndex, fact_index
from engine.facts.read import FactTable, read_facts
from engine.facts.relation import Facts, Parts, lanes_of, parts_of
from engine.facts.roles import FactColumns, FactRoles
from engine.lanes.runfiles import write_blocks
from engine.lanes.stored import lanes_read
from engine.runtime.jit import Ints
from engine.runtime.storage.places import make_folder, written
from engine.runtime.storage.reading import State, opened, parquet_file, state_of
from engine.runtime.storage.uris import Place, Uri, text_of

FACTS = "facts.parquet"


class FactInput(NamedTuple):
    """A fact relation to be read."""

    archive: Archive
    """With side "fact"."""
    roles: FactRoles
    columns: FactColumns


@dataclass(frozen=True)
class FactSummary:
    """What was read of F: ``rows`` are facts, or one of the other numbers, each."""

    rows: int
    facts: int
    duplicates: int
    deletes: int
    null_keys: int
    between_ticks: int
    rejected: int
    """`rows`, `facts`, `duplicates`, `deletes`, `null_keys`, `between_ticks`, `rejected`: See
    `engine.facts.read.FactTable`."""
    parts: int
    """Parts of F that have nothing to do with each other."""
    bytes: int = 0
    """Of its file among the lanes."""

    @property
    def report(self) -> dict[str, int]:
        """What reports say of it."""
        found = asdict(self)
        del found["bytes"]
        return found


def summary_of(table: FactTable, parts: Parts) -> FactSummary:
    """Return what was read of F, which has these parts."""
    return FactSummary(
        table.rows, table.facts.a.size, table.duplicates, table.deletes, table.null_keys,
        table.between_ticks, table.rejected.num_rows, parts.facts.size,
    )  # fmt: skip


@dataclass(frozen=True)
class FactFile:
    """Facts in a file, and how they are looked up."""

    path: Place
    access: str
    """{"scan", "index", "hash", "binary"}."""

    def index(self) -> FactIndex:
        """Return the facts made ready; once for all tasks of a process."""
        with lanes_read(self.path):
            return _index(self.path, state_of(text_of(self.path)), self.access)

    def payload(self) -> pa.Table:
        """Return the columns of the facts' archive as ``fact_<name>``, by the facts' position."""
        with lanes_read(self.path):
            table = _table(self.path)
        own = [name for name in table.column_names if name.startswith("fact_")]
        return table.select(own).combine_chunks()


@lru_cache(maxsize=2)
def _index(path: Place, state: State, access: str) -> FactIndex:
    del state
    table = _table(path, list(Facts._fields))
    facts = Facts(*(column.to_numpy() for column in table.columns))
    return fact_index(facts, access)


def _table(path: Place, columns: list[str] | None = None) -> pa.Table:
    if isinstance(path, Uri):
        with parquet_file(path) as file:
            return file.read(columns)
    return pq.read_table(path, columns=columns, page_checksum_verification=True)


@dataclass(frozen=True)
class FactRelation:
    """The fact relation itself, which each process that needs it reads.

    Parameters
    ----------
    fact : FactInput
    access : {"scan", "index", "hash", "binary"}
    bad_rows : {"error", "quarantine"}
    """

    fact: FactInput
    access: str
    bad_rows: str

    @property
    def table(self) -> FactTable:
        """What was read of it; once for all tasks of a process."""
        return _read(self.fact, self.bad_rows)

    def index(self) -> FactIndex:
        """Return the facts made ready; once for all tasks of a process."""
        return _indexed(self)

    @property
    def summary(self) -> FactSummary:
        """What it comes to."""
        return summary_of(self.table, parts_of(self.table.facts))

    def codes(self, found: Normalised) -> Ints:
        """Return the codes of tuples' join attributes, with the seed of F: (n,) int64."""
        seed = self.table.seed
        return found.key if seed == LANE_SEED else codes(found.keys, seed, found.ts.size)

    def key(self, side: int, found: Normalised) -> Ints:
        """Return the key that each tuple of a side has in a lane: (n,) int64."""
        own, values = _attributes(self)[side], self.table.values[side]
        return coded(self.codes(found), found.keys, own, values)[0]


@lru_cache(maxsize=2)
def _attributes(own: FactRelation) -> tuple[Ints, Ints]:
    """Return the codes of both sides' attributes, ascending."""
    return np.unique(own.table.facts.a), np.unique(own.table.facts.b)


@lru_cache(maxsize=2)
def _read(fact: FactInput, bad_rows: str) -> FactTable:
    return read_facts(*fact, bad_rows=bad_rows)


@lru_cache(maxsize=2)
def _indexed(own: FactRelation) -> FactIndex:
    return fact_index(own.table.facts, own.access)


def write_facts(table: FactTable, folder: Place, work: Place, lanes: int) -> FactSummary:
    """Write the facts and, for the tasks that read the streams, the lanes of their attributes.

    Parameters
    ----------
    table : FactTable
    folder : Path or Uri
        Of the lanes.
    work : Path or Uri
        Of what is not kept.
    lanes : int
        In each group of the partition columns.
    """
    parts = parts_of(table.facts)
    attributes = zip(parts.attributes, lanes_of(parts, lanes), table.values, strict=True)
    for side, (code, lane, values) in enumerate(attributes):
        named = {f"value_{i}": column for i, column in enumerate(values)}
        table_of_codes = pa.table({"code": code, "lane": lane} | named)
        write_blocks(table_of_codes, text_of(_codes_file(work, side)))
    path = folder / FACTS
    columns = {
        name: pa.array(column) for name, column in zip(Facts._fields, table.facts, strict=True)
    }
    if table.payload is not None:
        own = table.payload.take(pa.array(table.facts.row))
        columns |= {f"fact_{name}": own.column(name) for name in own.column_names}
    with written(path) as own_file:
        pq.write_table(pa.table(columns), own_file, compression="zstd", write_page_checksum=True)
    if table.rejected.num_rows:
        make_folder(folder / "_rejected")
        with written(folder / "_rejected" / "fact.parquet") as own_file:
            pq.write_table(table.rejected, own_file)
    return replace(summary_of(table, parts), bytes=state_of(text_of(path)).size)


def _codes_file(work: Place, side: int) -> Place:
    return work / f"facts-{side}.arrow"


@dataclass(frozen=True)
class FactCodes:
    """The attributes of F that tuples of one side may have."""

    work: Place
    """Where `write_facts` wrote them."""
    side: int

    def placed(self, found: Normalised, lanes: int) -> tuple[Ints, Ints]:
        """Return the code of each tuple and its lane within its group.

        Where F lacks an attribute whose hash is the code of another one, the code is one that F has
        not either.
        """
        table = _codes(_codes_file(self.work, self.side))
        code, lane = (table.column(name).to_numpy() for name in ("code", "lane"))
        names = [name for name in table.column_names if name.startswith("value_")]
        values = [table.column(name).combine_chunks() for name in names]
        key, at = coded(found.key, found.keys, code, values)
        other = (found.lane_hash % np.uint64(lanes)).astype(np.int64)
        known = at >= 0
        other[known] = lane[at[known]]
        return key, other


def coded(
    key: Ints, keys: Sequence[pa.Array], code: Ints, values: Sequence[pa.Array]
) -> tuple[Ints, Ints]:
    """Return the codes of tuples' attributes, and which of F's each is: -1 for none.

    Parameters
    ----------
    key : (n,) int64
        Codes with the seed of F.
    keys : sequence of pyarrow.Array
        What they stand for, a column an attribute.
    code : (attributes,) int64
        Of F, ascending.
    values : sequence of pyarrow.Array
        What these stand for; none where the code is the value itself.
    """
    at = _places(code, key)
    known = at < code.size
    known[known] = code[at[known]] == key[known]
    if values and known.any():
        rows = np.flatnonzero(known)
        same = np.ones(rows.size, np.bool_)
        for own, theirs in zip(keys, values, strict=True):
            alike = pc.equal(own.take(pa.array(rows)), theirs.take(pa.array(at[rows])))
            same &= alike.to_numpy(zero_copy_only=False)
        if not same.all():
            known[rows[~same]] = False
            key = key.copy()
            key[rows[~same]] = _absent(code)
    return key, np.where(known, at, -1)


def _places(code: Ints, key: Ints) -> Ints:
    """Return where each key belongs among ascending codes.

    Keys are searched in their order, so that each finds in the cache what the one before it read.
    """
    order = np.argsort(key)
    at = np.empty_like(order)
    at[order] = np.searchsorted(code, key[order])
    return at


@lru_cache(maxsize=4)
def _codes(path: Place) -> pa.Table:
    if isinstance(path, Uri):
        with opened(path) as source:
            return pa.ipc.open_file(source).read_all()
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _absent(code: Ints) -> int:
    """Return a number that is no code of F."""
    return int(np.setdiff1d(np.arange(code.size + 1), code)[0])
