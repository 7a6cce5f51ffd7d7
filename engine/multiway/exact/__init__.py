"""Exact multi-way window joins in memory: count the outputs, or write them."""

from engine.multiway.exact.join import ExactJoin, ExactTotals
from engine.multiway.exact.layout import OutputChunk

__all__ = ["ExactJoin", "ExactTotals", "OutputChunk"]
