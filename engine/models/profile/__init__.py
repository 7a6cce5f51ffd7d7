"""What two archived streams are like: arrival models, measured and advised upon (P5 2)."""
