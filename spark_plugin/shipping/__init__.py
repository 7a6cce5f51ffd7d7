"""The application as archives, for clusters where winnow is not installed."""
