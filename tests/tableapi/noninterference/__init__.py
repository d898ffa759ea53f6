"""Non-interference: data that a caller may not read changes no response that they get.

    pairs         generates two databases that agree on everything a caller may read
    programs      generates the requests
    runner        runs them on both databases and compares the responses byte by byte
    renaming      sends the same request for a hidden and a missing column
    write_checks  checks what a write does to one database
    name_leaks    checks that no response names a hidden column
    privileges    checks that a caller without roles changes nothing in product tables
    leaks         contains leaks that can be switched on; the tests must detect all of them

After Hritcu and others, "Testing Noninterference, Quickly": the generators decide what is detected. So there are few
distinct values, literals come from the secrets of both databases, and some column names do not exist.
"""
