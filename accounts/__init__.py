"""Users, roles, groups, access keys, sessions and passwords."""
