"""Stores, counts, deletes and purges documents."""
