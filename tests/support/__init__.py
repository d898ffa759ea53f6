"""What tests of several folders share. Fixtures and hooks are in the conftest files."""
