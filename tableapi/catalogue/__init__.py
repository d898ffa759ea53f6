"""The frozen catalogue of tables and columns. Pure."""
