"""Saving and maintaining a connection: script check, approval, certificates, settings for the library."""
