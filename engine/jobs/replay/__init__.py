"""The job behind `winnow replay`: prepare, profile, replay, commit, report."""
