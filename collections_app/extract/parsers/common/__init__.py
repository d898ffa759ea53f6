"""Code that the parsers share: archives, decoding, tables, text output."""
