"""The endpoints of the Table API: parameters and body in, status and headers out."""
