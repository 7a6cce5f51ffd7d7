"""Exact counting on a GPU: time and bandwidth, compared with DuckDB and the CPU.

The suite of GPU benchmarks calls `measure_count`, which runs on any `Device`, including the
simulator with a few rows.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpu_kernels.devices import Array, Device

KEYS, WINDOW = 100_000, 100_000
"""Of 100M + 100M tuples, one an instant on each side: about 2 matches a tuple."""
_DIGIT_BITS = 8


class Workload(NamedTuple):
    """Two streams in device memory, with the same ts, and the window of both."""

    ts: Array
    keys: tuple[Array, Array]
    window: int


def bytes_moved(
    rows_left: int, rows_right: int, code_bits: int, key_bytes: int = 4, lane_bytes: int = 0
) -> int:
    """Return the bytes that counting by sorted codes must move through device memory.

    Of every tuple, with codes of ``c`` bytes (4 where `code_bits` are at most 32, else 8):

    - ts (8 bytes), key and lane are read twice: to measure their ranges, then to make the codes;
    - the code is written once: c;
    - a radix sort by digits of 8 bits reads all codes once to count the digits (c), and reads and
      writes them once for each digit that the code has: ``2 * c * ceil(code_bits / 8)``. CuPy's
      sort does all c digits; that it does more than the code needs is not counted;
    - the search reads the codes of both sides once: c. Neighbouring tiles look at overlapping
      ranges, which caches hold.

    Totals and bounds are less than a thousandth of that.

    Parameters
    ----------
    code_bits : int
        Bits for lane, key and time together.
    key_bytes, lane_bytes : int
        Of an entry of the columns; no lanes: 0.

    Returns
    -------
    int

    Examples
    --------
    >>> bytes_moved(100, 100, 44)
    28800
    """
    code = 4 if code_bits <= 32 else 8
    passes = -(-code_bits // _DIGIT_BITS)
    columns = 2 * (8 + key_bytes + lane_bytes)
    return (rows_left + rows_right) * (columns + code + code + 2 * code * passes + code)


def workload(device: Device, rows: int) -> Workload:
    """Generate two streams of `rows` tuples in device memory, always the same.

    Keys are uniform. Where there are few rows, keys and window shrink with them.
    """
    keys = max(1, min(KEYS, rows // 100))
    window = min(WINDOW, keys)
    xp = device.xp
    ts = xp.arange(rows, dtype=np.int64)
    # A linear congruence and its high bits: the same keys on every device and array library.
    drawn = []
    for seed in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        word = ts.view(np.uint64) * np.uint64(seed)
        word ^= word >> np.uint64(29)
        word *= np.uint64(0x94D049BB133111EB)
        word >>= np.uint64(33)
        drawn.append((word % np.uint64(keys)).astype(np.int32))
    return Workload(ts, (drawn[0], drawn[1]), window)


def code_bits(rows: int, data: Workload, device: Device) -> int:
    """Return the bits of the workload's codes."""
    least = min(int(device.download(key.min()[None])[0]) for key in data.keys)
    most = max(int(device.download(key.max()[None])[0]) for key in data.keys)
    return (most - least).bit_length() + (rows - 1).bit_length()


def copy_bandwidth(device: Device, size: int, repeat: int = 7) -> float:
    """Return the bytes a second, read and written, of a copy within device memory.

    Parameters
    ----------
    size : int
        Bytes of the array copied; several times the cache.
    """
    source = device.xp.arange(max(1, size // 8), dtype=np.int64)
    target = device.empty(len(source), np.int64)

    def copy() -> None:
        target[:] = source

    return 2 * 8 * len(source) / timed(device, copy, target, repeat)


def timed(device: Device, run: Callable[[], Any], last: Array, repeat: int) -> float:
    """Return the median seconds of `run`, which is run once more before.

    The clock is read when the device has done all work: `last`, a device array, is then read.
    """
    seconds = []
    for _ in range(repeat + 1):
        device.download(last[:1])
        begin = time.perf_counter()
        run()
        device.download(last[:1])
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def stages(device: Device, data: Workload, repeat: int) -> dict[str, float]:
    """Return seconds of parts of the count: both sorts alone, and all up to the search.

    ``sort`` copies and sorts random words as often and as wide as the count does. What ``codes``
    takes more is measuring and encoding, what the count takes more than ``codes`` the search.
    """
    from gpu_kernels.probe import Stream  # noqa: PLC0415 - loads numba-cuda
    from gpu_kernels.probe.composite import coded  # noqa: PLC0415 - the same
    from gpu_kernels.probe.pieces import Piece  # noqa: PLC0415 - the same

    rows = len(data.ts)
    sides = (Stream(data.ts, data.keys[0]), Stream(data.ts, data.keys[1]))
    piece = Piece((0, 1), None, (slice(None), slice(None)), (rows, rows))
    codes = timed(device, lambda: coded(device, sides, piece, ordered=False), data.ts, repeat)
    narrow = code_bits(rows, data, device) <= 32
    words = data.ts.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (words >> np.uint64(32)).astype(np.uint32) if narrow else words
    scratch = words.copy()

    def sort() -> None:
        scratch[:] = words
        scratch.sort()

    return {"codes": codes, "sort": 2 * timed(device, sort, data.ts, repeat)}


def duckdb_count(data: Workload, device: Device) -> tuple[int, float] | None:
    """Return DuckDB's count and its seconds on all cores; None if it is not installed.

    The fastest of its rewrites in ``peers/duckdb_sql.py``: time is cut into buckets of
    ``2 W + 1``, the tuples of one side are copied into the buckets that their windows meet, and
    the join is on (key, bucket). Loading the tables is not timed.
    """
    try:
        import duckdb  # noqa: PLC0415 - a peer, optional
    except ImportError:
        return None
    import pyarrow as pa  # noqa: PLC0415 - with it

    w, width = data.window, 2 * data.window + 1
    with duckdb.connect(config={"threads": os.cpu_count() or 1}) as base:
        for side, key in zip("rs", data.keys, strict=True):
            columns = {"ts": device.download(data.ts), "key": device.download(key)}
            given = pa.table(columns)
            base.register("given", given)
            base.execute(f"CREATE TABLE {side} AS FROM given")
            base.unregister("given")
            del given, columns
        copied = f"SELECT key, ts, ts // {width} AS b FROM s"  # noqa: S608 - numbers of ours
        for n in (1, 2):
            copied += (
                f" UNION ALL SELECT key, ts, ts // {width} + {n} FROM s "  # noqa: S608
                f"WHERE (ts + {2 * w}) // {width} >= ts // {width} + {n}"
            )
        query = (
            f"SELECT count(*) FROM (SELECT key, ts, (ts + {w}) // {width} AS b FROM r) r "  # noqa: S608
            f"JOIN ({copied}) s ON r.key = s.key AND r.b = s.b "
            f"AND s.ts BETWEEN r.ts - {w} AND r.ts + {w}"
        )
        begin = time.perf_counter()
        row = base.execute(query).fetchone()
        seconds = time.perf_counter() - begin
    return (int(row[0]) if row else -1), seconds


def cpu_count(data: Workload, device: Device) -> tuple[int, float]:
    """Return the CPU engine's count and its seconds on all cores, compiled before."""
    from engine.exact import count_pairs  # noqa: PLC0415 - not needed on the device alone
    from engine.runtime.streams import StreamBatch  # noqa: PLC0415 - the same

    ts = device.download(data.ts)
    ones = np.ones(len(ts))
    sides = [StreamBatch(ts, ts, device.download(key).astype(np.int64), ones) for key in data.keys]
    none = StreamBatch(ts[:0], ts[:0], ts[:0], ones[:0])
    count_pairs(none, none, data.window, data.window)
    begin = time.perf_counter()
    found = count_pairs(sides[0], sides[1], data.window, data.window)
    return found.outputs, time.perf_counter() - begin


def measure_count(
    device: Device, rows: int = 100_000_000, peer_rows: int | None = None, repeat: int = 5
) -> dict[str, Any]:
    """Count the pairs of `rows` + `rows` tuples, and hold the count to the CPU's and DuckDB's.

    Parameters
    ----------
    rows : int
        Of each stream.
    peer_rows : int, optional
        Rows of each stream that CPU and DuckDB join; as many unless given. Counts are compared
        on these.
    repeat : int
        Timed runs, of which the median is taken.

    Returns
    -------
    dict
        ``outputs``, ``seconds``, ``tuples_per_s``, ``bytes_moved``, ``copy_bytes_per_s``,
        ``share_of_copy`` (held to 0.4), ``stages``, and for each peer its seconds, or why it did
        not run, and ``times_duckdb`` (held to 10): how many times as many tuples a second.

    Raises
    ------
    AssertionError
        If the counts differ.
    """
    from gpu_kernels.probe import Stream, count_pairs  # noqa: PLC0415 - loads numba-cuda

    data = workload(device, rows)

    def count(part: Workload) -> int:
        sides = [Stream(part.ts, key) for key in part.keys]
        return int(count_pairs(device, sides[0], sides[1], part.window, part.window)[0])

    outputs = count(data)
    seconds = timed(device, lambda: count(data), data.ts, repeat)
    bits = code_bits(rows, data, device)
    moved = bytes_moved(rows, rows, bits, data.keys[0].dtype.itemsize)
    copied = copy_bandwidth(device, 8 * rows)
    result: dict[str, Any] = {
        "rows": rows,
        "window": data.window,
        "code_bits": bits,
        "outputs": outputs,
        "seconds": seconds,
        "tuples_per_s": 2 * rows / seconds,
        "bytes_moved": moved,
        "copy_bytes_per_s": copied,
        "share_of_copy": moved / seconds / copied,
        "stages": stages(device, data, repeat),
    }
    size = min(rows, peer_rows or rows)
    part = Workload(data.ts[:size], (data.keys[0][:size], data.keys[1][:size]), data.window)
    expected = count(part)
    return result | _peers(device, part, expected, result["tuples_per_s"])


def _peers(device: Device, part: Workload, expected: int, rate: float) -> dict[str, Any]:
    """Return the peers' seconds, once their counts have been compared."""
    size = len(part.ts)
    counted, cpu_seconds = cpu_count(part, device)
    found: dict[str, Any] = {
        "peer_rows": size,
        "cpus": os.cpu_count(),
        "cpu_seconds": cpu_seconds,
        "times_cpu": rate * cpu_seconds / (2 * size),
    }
    peer = duckdb_count(part, device)
    for name, answer in (("the CPU", counted), ("DuckDB", peer[0] if peer else expected)):
        if answer != expected:
            raise AssertionError(f"the GPU counts {expected} pairs, {name} {answer}")
    if peer is None:
        return found | {"duckdb": "not installed here, so not compared"}
    return found | {"duckdb_seconds": peer[1], "times_duckdb": rate * peer[1] / (2 * size)}
