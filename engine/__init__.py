"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers."""
