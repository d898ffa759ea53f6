"""Backup, restore, re-encryption."""
