"""Tests of the query language, which needs neither Django nor a database."""
