"""Whose turn it is: leases, wake-ups and shutdown of the worker."""
