"""The protocol: messages in both revisions, and their errors."""
