"""Laws of the Table API for any query and any data: PostgreSQL compared with the oracle.

    stage      puts a world of the oracle into the database, for the length of one example
    questions  asks the product as a caller of the oracle does, and what is generated to be asked

That a query, printed and parsed again, is the same, is a law of `system.encoded_query` and tested there.
"""
