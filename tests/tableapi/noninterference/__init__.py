"""Non-interference: what a caller may not read changes no response that they get.

    pairs         generates two databases that agree on everything a caller may read
    programs      generates the requests
    running       runs them on both databases and compares every byte
    renaming      a hidden column and a missing one in the same request
    write_checks  what a write does to one database, whatever it responds
    name_leaks    no response names a hidden column
    privileges    a caller without roles changes nothing in the product's own tables
    leaks         leaks that can be switched on, each of which must be detected

After Hritcu and others, "Testing Noninterference, Quickly": the generators decide how much is detected. So values are
few and collide, literals come from the secrets of both databases, and some names of columns do not exist.
"""
