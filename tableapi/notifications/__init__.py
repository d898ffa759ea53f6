"""Tells people what concerns them: finds it in the change log, lists it, sends it by email."""
