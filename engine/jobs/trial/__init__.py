"""Short replays of candidates on sampled stretches of two archives, and what they recommend."""
