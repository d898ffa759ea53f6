"""Checks and saves tables, columns, views and rules, builds indexes, and finds usages of columns."""
