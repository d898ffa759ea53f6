"""Read records: parse, open the table, plan, compile, run, page."""
