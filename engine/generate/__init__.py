"""Generators of the papers' synthetic streams, seeded and in pieces of bounded memory.

``*_streams`` return tables, ``*_sources`` return what `write_streams` writes to a folder.
"""

from engine.generate.age_curve import AgeCurveSpec, age_curve, age_curve_sources, age_curve_streams
from engine.generate.arrivals import ImportanceModel
from engine.generate.lagged_gaussian import (
    LaggedGaussianSpec,
    lagged_gaussian_sources,
    lagged_gaussian_streams,
)
from engine.generate.source import StreamSource, write_streams
from engine.generate.zipf import ZipfSpec, zipf_sources, zipf_streams

__all__ = [
    "AgeCurveSpec",
    "ImportanceModel",
    "LaggedGaussianSpec",
    "StreamSource",
    "ZipfSpec",
    "age_curve",
    "age_curve_sources",
    "age_curve_streams",
    "lagged_gaussian_sources",
    "lagged_gaussian_streams",
    "write_streams",
    "zipf_sources",
    "zipf_streams",
]
