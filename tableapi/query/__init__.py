"""Parameters, parsed query, resolved paths, read plan. Pure."""
