"""Parsers that run in the child process. They import no other package of the product."""
