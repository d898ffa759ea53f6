"""The frozen catalogue of tables and columns, and the column types. Pure."""
