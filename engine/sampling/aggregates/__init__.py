"""Aggregates of a sampled join, with intervals (P5 4.3, 6.2.4)."""

from engine.sampling.aggregates.lane import LaneAggregates
from engine.sampling.aggregates.spec import AggregateSpec, parse_aggregate

__all__ = ["AggregateSpec", "LaneAggregates", "parse_aggregate"]
