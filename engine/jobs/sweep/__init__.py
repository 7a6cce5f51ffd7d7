"""The job behind `winnow sweep`."""
