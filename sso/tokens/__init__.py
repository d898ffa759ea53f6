"""Verification of tokens, and parsing of key sets."""
