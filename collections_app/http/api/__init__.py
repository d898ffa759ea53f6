"""Collection management under /api/collections, for scripts and for the pages: with key, password or session."""
