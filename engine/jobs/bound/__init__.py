"""The job behind `winnow bound`: the best possible result, lane by lane."""
