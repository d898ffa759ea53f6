"""Authentication by password, access key or session, and the lockout after failed passwords.

Sessions store the path `accounts.authentication.PasswordBackend`, so it must not change.
"""

from accounts.authentication.schemes import PasswordBackend as PasswordBackend
