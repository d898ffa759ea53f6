"""Index builds, change log partitions and wake-ups of the worker."""
