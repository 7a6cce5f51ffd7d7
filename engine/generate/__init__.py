"""Generators of the papers' synthetic streams, seeded and in pieces of bounded memory.

``*_sources`` return what `write_streams` writes to a folder, and `in_memory` turns into tables. It
imports `runtime`. A newcomer starts with `zipf.py`.
"""

from engine.generate.age_curve import AgeCurveSpec, age_curve, age_curve_sources
from engine.generate.arrivals import ImportanceModel
from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import StreamSource, in_memory, write_streams
from engine.generate.zipf import ZipfSpec, zipf_sources

__all__ = [
    "AgeCurveSpec", "ImportanceModel", "LaggedGaussianSpec", "StreamSource", "ZipfSpec",
    "age_curve", "age_curve_sources", "in_memory", "lagged_gaussian_sources", "write_streams",
    "zipf_sources",
]  # fmt: skip
