"""Prepared lanes: what lies in their folder, and whether it is whole."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.archives.moments import time_type
from engine.lanes.facts import FACTS, FactFile, FactSummary
from engine.lanes.runs import TimedPiece
from engine.lanes.sealed import sealed, unsealed
from engine.lanes.stored import MergedFile, Rows, RunPieces, Stored
from engine.runtime.errors import InputError
from engine.runtime.storage.places import is_there
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uploads import objects
from engine.runtime.storage.uris import Place, Uri
from engine.runtime.streams import SIDES

VERSION = 7
MANIFEST = "manifest.json"
LANE = re.compile(r"lane-\d{5,}")
"""What `lane_folder` names."""
RUNS = "runs"
"""Folder of the runs that lanes have pieces of."""
_LOOKED_AT = 8_192
"""Rows read at a time to find one."""


def lane_folder(lane: int) -> str:
    """Return the name of a lane's folder.

    Examples
    --------
    >>> lane_folder(7)
    'lane-00007'
    """
    return f"lane-{lane:05d}"


def lane_file(side: int) -> str:
    """Return the name of a side's file in the folder of a lane."""
    return f"{SIDES[side]}.parquet"


@dataclass(frozen=True)
class LaneSide:
    """One stream within a lane."""

    rows: int = 0
    first_ts: int | None = None
    last_ts: int | None = None
    bytes: int = 0
    """Of its own file; 0 where it has none."""
    pieces: tuple[TimedPiece, ...] = ()
    """Of runs in time order, where they were not merged into a file."""


@dataclass(frozen=True)
class Lane:
    """One independent join."""

    number: int
    """Group index * lanes per group + hash lane."""
    group: tuple[Any, ...]
    """Values of the partition columns as JSON holds them; empty without any."""
    sides: tuple[LaneSide, LaneSide]
    """Left and right."""


@dataclass(frozen=True)
class StreamSummary:
    """One stream: ``rows = joined + null_keys + rejected``, always."""

    rows: int
    joined: int
    null_keys: int
    rejected: int
    sorted: bool
    """Whether its files are in time order already."""
    first_ts: int | None
    last_ts: int | None
    """`first_ts`, `last_ts`: Of the rows joined."""
    on: tuple[str, ...]
    """Join attributes."""


@dataclass(frozen=True)
class Prepared:
    """A folder of lanes."""

    folder: Place
    fingerprint: str
    """Of the inputs and everything that the lanes depend on."""
    unit: str
    """What one tick is."""
    lanes_per_group: int
    groups: int
    payload: bool
    """Whether the lane files hold every source column."""
    seed: int
    """Of the codes of hashed keys."""
    keys: tuple[str, ...]
    """Canonical types of the left stream's join attributes."""
    streams: tuple[StreamSummary, StreamSummary]
    lanes: tuple[Lane, ...]
    """All of them, by number, those without rows included."""
    facts: FactSummary | None = None
    """Of the fact relation that joins the streams, if one does."""
    runs: dict[str, int] = field(default_factory=dict)
    """Bytes of the runs that lanes have pieces of, by name."""
    zone: str | None = None
    """Time zone of the left stream's times, which a job fills in: the folder has none."""

    @property
    def time(self) -> pa.DataType:
        """The type of times in outputs."""
        return time_type(self.unit, self.zone)

    @property
    def left(self) -> StreamSummary:
        """The left stream."""
        return self.streams[0]

    @property
    def right(self) -> StreamSummary:
        """The right stream."""
        return self.streams[1]

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last tick of both streams, None without rows."""
        firsts = [own.first_ts for own in self.streams if own.first_ts is not None]
        lasts = [own.last_ts for own in self.streams if own.last_ts is not None]
        return (min(firsts), max(lasts)) if firsts else None

    def stream(self, lane: int, side: int) -> Stored | None:
        """Return where one side (0 left, 1 right) of a lane lies, None if it has no rows."""
        own = self.lanes[lane].sides[side]
        if own.pieces:
            return RunPieces(Path(self.folder) / RUNS, own.pieces)
        return MergedFile(self.lane_folder(lane) / lane_file(side)) if own.rows else None

    def lane_folder(self, lane: int) -> Place:
        """Return a lane's folder, which is there if the lane has rows."""
        return self.folder / lane_folder(lane)

    def fact_file(self, access: str) -> FactFile | None:
        """Return the fact relation, None where there is none."""
        return None if self.facts is None else FactFile(self.folder / FACTS, access)

    @property
    def rejected_files(self) -> tuple[Place, ...]:
        """The files of rejected rows: of left, right and fact, as far as there are any."""
        paths = (self.folder / "_rejected" / f"{name}.parquet" for name in (*SIDES, "fact"))
        return tuple(path for path in paths if is_there(path))

    def matches(self, fingerprint: str) -> bool:
        """Return whether this is what `fingerprint` stands for, with every file there."""
        sizes = {f"{RUNS}/{name}": size for name, size in self.runs.items()}
        for lane in self.lanes:
            for side, own in enumerate(lane.sides):
                if own.rows and not own.pieces:
                    sizes[f"{lane_folder(lane.number)}/{lane_file(side)}"] = own.bytes
        if self.facts is not None:
            sizes[FACTS] = self.facts.bytes
        if self.fingerprint != fingerprint:
            return False
        if isinstance(self.folder, Uri):
            found = {own.name: own.size for own in objects(self.folder)}
            return all(found.get(name) == size for name, size in sizes.items())
        folder = self.folder
        return all(_size(folder / name) == size for name, size in sizes.items())

    def content(self) -> str:
        """Return what the manifest says."""
        found = {own.name: getattr(self, own.name) for own in fields(self)} | {"version": VERSION}
        found["folder"] = self.folder.name if isinstance(self.folder, Uri) else ""
        return sealed(found)

    @staticmethod
    def load(folder: Place) -> Prepared:
        """Read the manifest of prepared lanes, which says in which folder of a store they are.

        Raises
        ------
        InputError
            If there is none, it is of another version, or it was edited or damaged.
        """
        path = folder / MANIFEST
        try:
            found = bytes_at(path)
            if found is None:
                raise InputError(f"folder {folder} holds no lanes: prepare them")
            content, whole = unsealed(found)
            if content.pop("version") != VERSION:
                raise InputError(f"{path} is of another version of winnow: prepare the lanes again")
            if not whole:
                raise InputError(f"{path} was edited or damaged: prepare the lanes again")
            own = content.pop("folder")
            return _parsed(folder / own if own else folder, content)
        except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"folder {folder} holds no whole lanes ({error}): prepare them again"
            ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _parsed(folder: Place, content: dict[str, Any]) -> Prepared:
    streams = [
        StreamSummary(**(stream | {"on": tuple(stream["on"])})) for stream in content["streams"]
    ]
    lanes = [
        Lane(
            lane["number"], tuple(lane["group"]), (_side(lane["sides"][0]), _side(lane["sides"][1]))
        )
        for lane in content["lanes"]
    ]
    rest = content | {
        "streams": (streams[0], streams[1]),
        "lanes": tuple(lanes),
        "keys": tuple(content["keys"]),
        "facts": None if content["facts"] is None else FactSummary(**content["facts"]),
    }
    return Prepared(folder=folder, **rest)


def _side(content: dict[str, Any]) -> LaneSide:
    pieces = tuple(TimedPiece(*piece) for piece in content["pieces"])
    return LaneSide(**(content | {"pieces": pieces}))


def key_of(prepared: Prepared, lane: int, side: int, row: int) -> tuple[Any, ...]:
    """Return the join attributes of one archive row, as they are in the archive.

    Reads row numbers beside keys or, where the archive's own are kept, times, and then what shares
    the row's instant: O(rows of the lane).

    Raises
    ------
    InputError
        If the lane has no such row.
    """
    names = [f"{SIDES[side]}_{name}" for name in prepared.streams[side].on]
    stored = prepared.stream(lane, side)
    if stored is not None:
        with stored.open() as rows:
            kept = names[0] in rows.schema.names
            found = _named(rows, row, "_ts" if kept else "_key")
            if found is not None and not kept:
                return (_integer(found, prepared.keys[0]),)
            if found is not None:
                batches = rows.batches(["_ts", "_row", *names], between=(found, found))
                instant = pa.Table.from_batches(batches)
                at = pc.index(instant.column("_row"), row).as_py()
                return tuple(_plain(instant.column(name)[at]) for name in names)
    raise InputError(f"lane {lane} holds no row {row} of stream {SIDES[side]}")


def _named(rows: Rows, row: int, column: str) -> int | None:
    """Return what a column has beside a row's number, None where no row has it."""
    for batch in rows.batches(["_row", column], rows=_LOOKED_AT):
        at = pc.index(batch.column("_row"), row).as_py()
        if at >= 0:
            return int(batch.column(column)[at].as_py())
    return None


def _plain(cell: pa.Scalar) -> Any:  # noqa: ANN401 - whatever a column holds
    if pa.types.is_timestamp(cell.type) and cell.type.unit == "ns":
        return str(cell.cast(pa.string()))  # Python's datetime has no nanoseconds
    return cell.as_py()


def _integer(code: int, kind: str) -> int:
    return code % 2**64 if kind == "uint64" else code
