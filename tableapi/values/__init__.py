"""Column values: read, compare, display, default."""
