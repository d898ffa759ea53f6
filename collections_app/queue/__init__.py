"""The queue of documents to process: leases, and signals to the worker."""
