"""The pages and the fragments that their scripts request, one module for each page."""
