"""Loads the catalogue, runs statements and retries on a newer catalogue."""
