"""Finds, creates and updates accounts from verified claims, in one transaction."""
