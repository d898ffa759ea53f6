"""Base model, change history, acting user."""
