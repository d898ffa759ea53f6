"""A read plan becomes SQL text with parameters. Pure."""
