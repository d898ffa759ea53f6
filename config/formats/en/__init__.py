"""One spelling everywhere: the one that the API uses."""
