"""Stores and indexes the vectors of chunks, and moves collections to another model."""
