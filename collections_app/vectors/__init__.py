"""Vectors of chunks: store, index, move to another model."""
