"""The job behind `winnow lookup`."""
