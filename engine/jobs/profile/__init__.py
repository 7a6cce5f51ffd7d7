"""The job behind `winnow profile`."""
