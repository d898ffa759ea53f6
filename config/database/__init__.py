"""DATABASE_URL as Django settings."""
