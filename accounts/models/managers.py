"""Finds users by login or email, with the configured case sensitivity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.base_user import BaseUserManager
from django.db import models
from django.db.models import Func
from django.db.models.functions import Concat, Lower

from accounts.normalization import composed, similarity_key
from system import properties

if TYPE_CHECKING:
    from accounts.models import User


class UserManager(BaseUserManager["User"]):
    def create_user(self, login: str, password: str | None = None, **columns: Any) -> User:
        user = self.model(login=login, **columns)
        user.set_password(password)
        user.save()
        return user

    def find_by_exact_login(self, login: str) -> User | None:
        """The user with exactly this login, as sent or normalized."""
        spellings = dict.fromkeys((login, composed(login)))
        return next(filter(None, (self.filter(login=spelling).first() for spelling in spellings)), None)

    def with_email(self, email: str) -> models.QuerySet[User]:
        """The users with this email address; none for an empty one."""
        if not email:
            return self.none()
        if properties.get(properties.CASE_SENSITIVE):
            return self.filter(email=email)
        return self.annotate(lower_email=Lower("email")).filter(lower_email=email.lower())

    def similar_to(self, user: User) -> models.QuerySet[User]:
        """Other users who may be mistaken for this one: with a similar login or the same name."""
        others = self.exclude(pk=user.pk).annotate(
            login_key=_similarity_key_sql("login"), name_key=_similarity_key_sql(Concat("first_name", "last_name"))
        )
        name = similarity_key(user.first_name + user.last_name)
        has_same_name = models.Q(name_key=name) if name else models.Q()
        return others.filter(models.Q(login_key=similarity_key(user.login)) | has_same_name).order_by("login")

    def find_by_login(self, login: str) -> User | None:
        """The user with this login; if case is ignored, also the only user whose login differs just in case."""
        exact_match = self.find_by_exact_login(login)
        if exact_match or properties.get(properties.CASE_SENSITIVE):
            return exact_match
        login = composed(login)
        # lower(), never upper(): a dotless i in upper case is I, which would merge two users.
        candidates = self.annotate(lower_login=Lower("login")).filter(lower_login=login.lower())
        # The Kelvin sign in lower case is k, but it is another character.
        users = [user for user in candidates if user.login.isascii() == login.isascii()]
        return users[0] if len(users) == 1 else None


def _similarity_key_sql(text: Any) -> Lower:
    """`similarity_key` in SQL, except for rare kinds of spaces."""
    return Lower(Func(text, models.Value(r"\s"), models.Value(""), models.Value("g"), function="regexp_replace"))
