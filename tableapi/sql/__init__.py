"""Compiles read plans to SQL text with parameters. Pure."""
