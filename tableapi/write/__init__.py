"""Create, update and delete records: payload, lock, permission, change, response."""
