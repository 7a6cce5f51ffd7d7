"""The job behind `winnow sample`."""
