"""Document metadata: validation, and its filter as SQL. Pure."""
