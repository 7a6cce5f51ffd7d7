"""Exact multi-way window joins in memory: counted, and written down."""

from engine.multiway.exact.join import ExactJoin, Totals
from engine.multiway.exact.layout import OutputChunk

__all__ = ["ExactJoin", "OutputChunk", "Totals"]
