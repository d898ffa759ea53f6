"""The service's PostgreSQL backend for Django."""
