"""Area B, the Table API."""
