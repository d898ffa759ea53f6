"""Helpers for the tests of several folders. Fixtures and hooks are in the conftest files."""
