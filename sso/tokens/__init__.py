"""Tokens and keys become claims or a refusal. Pure."""
