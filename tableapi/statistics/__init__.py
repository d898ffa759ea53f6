"""Statistics of a table: parameters → plan → statement, behind the caller's view."""
