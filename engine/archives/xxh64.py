"""XXH64 over rows in numba (Yann Collet, xxHash, section XXH64), and whether rows are the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Ints, jit

Bytes = NDArray[np.uint8]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@jit
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@jit
def _word(data: Bytes, at: int, size: int) -> np.uint64:
    word = np.uint64(0)
    for byte in range(size):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return word


@jit
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _P2, 31) * _P1


@jit
def _merge(hashed: np.uint64, lane: np.uint64) -> np.uint64:
    return (hashed ^ _round(np.uint64(0), lane)) * _P1 + _P4


@jit
def _joined(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> np.uint64:
    hashed = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    return _merge(_merge(_merge(_merge(hashed, a), b), c), d)


@jit
def _with_word(hashed: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(hashed ^ _round(np.uint64(0), word), 27) * _P1 + _P4


@jit
def _avalanche(hashed: np.uint64) -> np.uint64:
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _P2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _P3
    return hashed ^ (hashed >> np.uint64(32))


@jit
def _xxh64(data: Bytes, at: int, stop: int, seed: np.uint64) -> np.uint64:
    size = np.uint64(stop - at)
    if stop - at >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while stop - at >= 32:
            a = _round(a, _word(data, at, 8))
            b = _round(b, _word(data, at + 8, 8))
            c = _round(c, _word(data, at + 16, 8))
            d = _round(d, _word(data, at + 24, 8))
            at += 32
        hashed = _joined(a, b, c, d)
    else:
        hashed = seed + _P5
    hashed += size
    while stop - at >= 8:
        hashed = _with_word(hashed, _word(data, at, 8))
        at += 8
    if stop - at >= 4:
        hashed = _rotate(hashed ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        hashed = _rotate(hashed ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _avalanche(hashed)


@jit
def _words(words: NDArray[np.uint64], width: int, hashes: NDArray[np.uint64]) -> None:
    size = np.uint64(8 * width)
    for i in range(len(hashes)):
        seed, at = hashes[i], i * width
        if width == 4:
            hashed = size + _joined(
                _round(seed + _P1 + _P2, words[at]),
                _round(seed + _P2, words[at + 1]),
                _round(seed, words[at + 2]),
                _round(seed - _P1, words[at + 3]),
            )
        else:
            hashed = size + seed + _P5
            for place in range(at, at + width):
                hashed = _with_word(hashed, words[place])
        hashes[i] = _avalanche(hashed)


def hash_words(words: Ints, hashes: NDArray[np.uint64]) -> None:
    """Replace each of `hashes`, the seeds, by the hash of its row of words, little endian.

    Parameters
    ----------
    words : (n, width) int64
        At most 4 words a row.
    hashes : (n,) uint64
        Seeds, overwritten. O(n width).
    """
    _words(np.ascontiguousarray(words).view(np.uint64).reshape(-1), words.shape[1], hashes)


@jit
def hash_spans(data: Bytes, offsets: Ints, hashes: NDArray[np.uint64]) -> None:
    """Replace each of `hashes`, the seeds, by the hash of ``data[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    data : (m,) uint8
    offsets : (n + 1,) int64
    hashes : (n,) uint64
        Seeds, overwritten. O(m + n).
    """
    for i in range(len(hashes)):
        hashes[i] = _xxh64(data, offsets[i], offsets[i + 1], hashes[i])


@jit
def same_spans(data: Bytes, offsets: Ints, one: Ints, other: Ints) -> bool:
    """Return whether ``data[offsets[i]:offsets[i + 1]]`` is that of `j` for all pairs of rows.

    Parameters
    ----------
    data : (m,) uint8
    offsets : (n + 1,) int64
    one, other : (p,) int64
        Rows i and j. O(p + their bytes).
    """
    for pair in range(len(one)):
        i, j = offsets[one[pair]], offsets[other[pair]]
        size = offsets[one[pair] + 1] - i
        if offsets[other[pair] + 1] - j != size:
            return False
        for at in range(size):
            if data[i + at] != data[j + at]:
                return False
    return True
