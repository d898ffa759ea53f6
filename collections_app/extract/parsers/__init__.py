"""Parsers, run in the child process. They import nothing of the product."""
