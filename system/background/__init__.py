"""Index builds and wake-ups of the worker."""
