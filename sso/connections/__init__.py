"""Saving and keeping a connection: approval, script check, certificates."""
