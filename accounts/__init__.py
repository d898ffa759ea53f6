"""Who is calling: people, roles, groups, access keys, sessions, passwords."""
