"""The job behind `winnow allocate`."""
