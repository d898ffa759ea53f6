"""What happens when an administrator changes a table, column, view or rule."""
