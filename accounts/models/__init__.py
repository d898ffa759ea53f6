"""Models of companies, users, roles, groups, access keys and sessions."""

from .access_keys import AccessKey
from .failed_attempts import FailedAttempts
from .groups import Group, UserGroup
from .notification_choices import NotificationChoice
from .roles import Role, UserRole
from .sessions import Session
from .users import Company, User, check_login

__all__ = [
    "AccessKey", "Company", "FailedAttempts", "Group", "NotificationChoice", "Role", "Session", "User", "UserGroup",
    "UserRole", "check_login",
]  # fmt: skip
