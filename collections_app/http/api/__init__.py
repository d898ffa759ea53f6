"""Management endpoints under /api/collections for scripts and pages; accept a key, a password or a session."""
