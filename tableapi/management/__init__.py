"""Commands of the Table API."""
