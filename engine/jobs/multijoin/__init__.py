"""The job behind `winnow multijoin`."""
