"""Approximate sliding-window joins of archived streams; `winnow` has what users import."""
