"""Base model, change history and acting user."""
