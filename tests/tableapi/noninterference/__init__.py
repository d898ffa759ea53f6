"""Non-interference: what a caller may not read changes no response that they get.

    pairs         makes two databases that agree on everything a caller may read, and what that caller asks of both
    programs      the requests
    running       asks both and compares every byte
    renaming      a hidden column and a missing one, asked for alike
    duties        what a write does to one database, whatever it tells
    whispers      that no answer names a hidden column
    privileges    that nobody without a role changes the product's own tables
    leaks         faults that can be switched on, each of which must be found

After Hritcu and others, "Testing Noninterference, Quickly": the generators decide how much is found. So values are few
and collide, literals come from the secrets of both databases, and names from all columns and some that do not exist.
"""
