"""Aggregates of a sampled join, with intervals (P5 4.3, 6.2.4)."""

from engine.sampling.aggregates.lane import LaneAggregates
from engine.sampling.aggregates.parse import parse_aggregate
from engine.sampling.aggregates.spec import AggregateSpec

__all__ = ["AggregateSpec", "LaneAggregates", "parse_aggregate"]
