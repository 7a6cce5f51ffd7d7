"""One archive replayed under a grid of policies, budgets, windows and seeds, its streams shared."""
