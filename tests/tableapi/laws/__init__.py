"""Invariants of the Table API, tested with random data and queries; the oracle computes the expected results.

    storage        stores a world of the oracle in the database for one example
    list_requests  generates requests and sends them as a caller of the oracle

The tests of `system.encoded_query` check that printing and parsing a query returns the same query.
"""
