"""The job that replays several streams through a fact relation."""
