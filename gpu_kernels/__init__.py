"""Device code, and the scalar functions that CPU and GPU share."""
