"""In charge of finding people by their login or email, as the rules on spelling and on upper and lower case say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.base_user import BaseUserManager
from django.db import models
from django.db.models import Func
from django.db.models.functions import Concat, Lower

from accounts.normalisation import bare, composed
from system import properties

if TYPE_CHECKING:
    from accounts.models import User


class UserManager(BaseUserManager["User"]):
    """Finds people by their login, as the rules on upper and lower case say."""

    def create_user(self, login: str, password: str | None = None, **columns: Any) -> User:
        user = self.model(login=login, **columns)
        user.set_password(password)
        user.save()
        return user

    def get_by_natural_key(self, username: str | None) -> User:
        found = self.spelled(username or "")
        if found is None:
            raise self.model.DoesNotExist
        return found

    def spelled(self, login: str) -> User | None:
        """The user of this login: as it came, or composed, as logins are stored."""
        ways = dict.fromkeys((login, composed(login)))
        return next(filter(None, (self.filter(login=way).first() for way in ways)), None)

    def with_email(self, email: str) -> models.QuerySet[User]:
        """The users of this address, as the rules on upper and lower case say; nobody of none."""
        if not email:
            return self.none()
        if properties.get(properties.CASE_SENSITIVE):
            return self.filter(email=email)
        return self.annotate(folded=Lower("email")).filter(folded=email.lower())

    def taken_for(self, user: User) -> models.QuerySet[User]:
        """Others whom people may take for this one: of a like login, or of the same name."""
        found = self.exclude(pk=user.pk).annotate(
            bare_login=_bare("login"), bare_name=_bare(Concat("first_name", "last_name"))
        )
        name = bare(user.first_name + user.last_name)
        is_named = models.Q(bare_name=name) if name else models.Q()
        return found.filter(models.Q(bare_login=bare(user.login)) | is_named).order_by("login")

    def with_login(self, login: str) -> User | None:
        """The user of this login: as spelled; where case does not count also otherwise spelled, if only one is."""
        exact = self.spelled(login)
        if exact or properties.get(properties.CASE_SENSITIVE):
            return exact
        login = composed(login)
        # lower(), never upper(): the upper case of a dotless i is I, which would merge two people.
        alike = self.annotate(folded=Lower("login")).filter(folded=login.lower())
        # The lower case of a Kelvin sign is k: it only looks like one.
        found = [user for user in alike if user.login.isascii() == login.isascii()]
        return found[0] if len(found) == 1 else None


def _bare(text: Any) -> Lower:
    """As `spelling.bare` does it, in the database, but for rare kinds of spaces."""
    return Lower(Func(text, models.Value(r"\s"), models.Value(""), models.Value("g"), function="regexp_replace"))
