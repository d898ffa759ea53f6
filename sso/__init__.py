"""Area A, single sign-on."""
