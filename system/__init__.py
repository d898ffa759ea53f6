"""Code shared by all areas: records, errors, HTTP handling, properties, logs, outbound calls, the sandbox."""
