"""The job behind `winnow size`: what a cluster must be given."""
