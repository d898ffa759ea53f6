"""Index builds beside writers, wake-ups of the worker."""
