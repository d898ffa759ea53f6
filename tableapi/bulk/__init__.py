"""Writes many records in one request, or one by a unique column: requests → single writes, or rows of one statement."""
