"""Rules become decisions, and a table as one caller sees it. Pure."""
