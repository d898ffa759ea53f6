"""Creates users, and clients with their sessions."""

from typing import Any

from django.test import Client

from accounts.models import Role, User, UserRole

PASSWORD = "correct horse 42"


def make_user(login: str, *roles: str, **columns: Any) -> User:
    user = User.objects.create_user(login, PASSWORD, **columns)
    for name in roles:
        UserRole.objects.create(user=user, role=Role.objects.get(name=name))
    return user


def signed_in_client(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client
