"""Database settings from DATABASE_URL."""
