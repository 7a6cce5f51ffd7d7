"""The application in archives: what a cluster needs where nothing of winnow is installed."""
