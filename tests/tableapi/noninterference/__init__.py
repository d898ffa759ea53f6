"""Non-interference: what a caller may not read changes no answer that they get.

    pairs     makes two databases that agree on everything a caller may read, and what that caller asks of both
    programs  the requests
    running   asks both and compares every byte
    leaks     faults that can be switched on, each of which must be found

After Hritcu and others, "Testing Noninterference, Quickly": the generators decide how much is found. So values are few
and collide, literals come from the secrets of both databases, and names from all columns and some that do not exist.
"""
