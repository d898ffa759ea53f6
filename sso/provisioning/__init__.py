"""Verified claims become an account, in one transaction."""
