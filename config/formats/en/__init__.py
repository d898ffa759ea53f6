"""Pages use the same formats as the API."""
