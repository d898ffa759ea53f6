"""Text becomes passages, cut at headings. Pure."""
