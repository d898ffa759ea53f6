"""Measures the search quality of a collection: questions -> run -> measures -> comparison."""
