"""Comments, attachments and followers of records, and the restoring of deleted records."""
