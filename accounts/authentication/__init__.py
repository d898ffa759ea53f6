"""Who is calling: Basic, Bearer or session; passwords, keys, lockout.

Sessions store the path `accounts.authentication.PasswordBackend`, so it stays.
"""

from accounts.authentication.schemes import PasswordBackend

__all__ = ["PasswordBackend"]
