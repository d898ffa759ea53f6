"""Notifications: found in the change log, listed, sent by email."""
