"""What a list page shows: its columns, its query as a tree for the builder, its rows and groups."""
