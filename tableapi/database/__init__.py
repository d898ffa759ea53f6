"""Loads the catalogue and runs statements."""
