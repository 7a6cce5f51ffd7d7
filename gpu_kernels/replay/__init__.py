"""Whole replays of many lanes in parallel: priority update, eviction and probe (contract, 2)."""
