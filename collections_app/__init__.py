"""Area C, document collections."""
