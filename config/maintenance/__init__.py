"""Backup, restore and re-encryption."""
