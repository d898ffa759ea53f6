"""Laws of the Table API for any query and any data: PostgreSQL compared with the oracle.

    storage        stores a world of the oracle in the database, for one example
    list_requests  generates requests, and sends them as a caller of the oracle

That a query is the same after printing and parsing is tested with `system.encoded_query`.
"""
