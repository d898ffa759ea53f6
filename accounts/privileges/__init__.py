"""Guards of privileged accounts and of the last administrator."""
