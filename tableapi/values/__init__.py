"""Column values: read, compare, display, sanitize."""
