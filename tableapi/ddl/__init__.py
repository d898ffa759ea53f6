"""Changes tables in PostgreSQL: names, types, locks, ALTER TABLE."""
