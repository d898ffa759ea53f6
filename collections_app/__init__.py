"""Document collections: loads, searches and manages documents."""
