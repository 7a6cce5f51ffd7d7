"""What a harvested join learns while it runs, and the setting that follows from it (P4 5)."""
