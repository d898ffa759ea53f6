"""Imports and exports folders; creates the demo documents."""
