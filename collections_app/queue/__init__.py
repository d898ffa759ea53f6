"""The queue of documents: leases, and signals to the worker."""
