"""Companies and users, who are found by login or email with the configured case sensitivity."""

import unicodedata
from collections.abc import Collection
from datetime import tzinfo
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Func
from django.db.models.functions import Concat, Lower

from accounts import roles
from accounts.models import time_zones
from accounts.models.access_keys import AccessKey
from accounts.models.sessions import Session
from accounts.models.slow_statement_limit import SlowStatementLimit
from accounts.normalization import composed, similarity_key
from system import properties
from system.records.history import history_field
from system.records.record import Record


class Company(Record):
    table_columns = ("name", "active")

    name = models.CharField(max_length=200, unique=True)
    active = models.BooleanField(default=True)

    class Meta(Record.Meta):
        db_table = "company"
        verbose_name_plural = "companies"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


def check_login(login: str) -> None:
    """Requires one line of visible text; a colon would end the login in Basic credentials."""
    if not login or login != login.strip() or ":" in login:
        raise ValidationError("A login must not contain a colon. It must not start or end with a space.")
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in login):
        raise ValidationError("A login must not contain control or invisible characters.")


class UserManager(BaseUserManager["User"]):
    def create_user(self, login: str, password: str | None = None, **columns: Any) -> "User":
        user = self.model(login=login, **columns)
        user.set_password(password)
        user.save()
        return user

    def find_by_exact_login(self, login: str) -> "User | None":
        """The user with exactly this login, as sent or normalized."""
        spellings = dict.fromkeys((login, composed(login)))
        return next(filter(None, (self.filter(login=spelling).first() for spelling in spellings)), None)

    def with_email(self, email: str) -> "models.QuerySet[User]":
        """The users with this email address; none for an empty one."""
        if not email:
            return self.none()
        if properties.get(properties.CASE_SENSITIVE):
            return self.filter(email=email)
        return self.annotate(lower_email=Lower("email")).filter(lower_email=email.lower())

    def similar_to(self, user: "User") -> "models.QuerySet[User]":
        """Other users who may be mistaken for this one: with a similar login or the same name."""
        others = self.exclude(pk=user.pk).annotate(
            login_key=_similarity_key_sql("login"), name_key=_similarity_key_sql(Concat("first_name", "last_name"))
        )
        name = similarity_key(user.first_name + user.last_name)
        has_same_name = models.Q(name_key=name) if name else models.Q()
        return others.filter(models.Q(login_key=similarity_key(user.login)) | has_same_name).order_by("login")

    def find_by_login(self, login: str) -> "User | None":
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


class Theme(models.TextChoices):
    SYSTEM = "system", "System"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class User(Record, SlowStatementLimit, AbstractBaseUser):
    """A person or program that can sign in or call the API."""

    table_columns = (
        "login", "email", "password", "first_name", "last_name", "phone", "company", "time_zone", "active",
        "last_login",
    )  # fmt: skip
    secret_columns = frozenset({"password"})
    display_column = "login"

    login = models.CharField(max_length=150, validators=[check_login])
    email = models.EmailField(blank=True, default="")
    first_name = models.CharField(max_length=150, blank=True, default="")
    last_name = models.CharField(max_length=150, blank=True, default="")
    phone = models.CharField(max_length=50, blank=True, default="")
    company = models.ForeignKey(Company, null=True, blank=True, on_delete=models.SET_NULL)
    time_zone = models.CharField(
        max_length=64,
        blank=True,
        default="UTC",
        db_default="UTC",
        validators=[time_zones.check_name],
        help_text="Decides when a day begins in your queries.",
    )
    theme = models.CharField(
        max_length=6, choices=Theme.choices, default=Theme.SYSTEM, db_default=Theme.SYSTEM, editable=False
    )
    last_login = models.DateTimeField("last login", null=True, blank=True, editable=False)
    active = models.BooleanField(
        default=True, help_text="Turn off to block sign-in and revoke keys and sessions immediately."
    )
    history = history_field(omit=("password", "theme", "last_login", "slow_statements", "slow_at"))
    is_password_removed = False  # by an unsaved change
    access_key: AccessKey | None = None  # of the request

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "login"

    class Meta(Record.Meta):
        db_table = "user"
        ordering = ["login"]
        constraints = [
            models.UniqueConstraint(
                fields=["login"], name="user_login_unique", violation_error_message="This login is already in use."
            )
        ]
        indexes = [
            models.Index(Lower("login"), name="user_login_lower"),
            models.Index(Lower("email"), name="user_email_lower"),
        ]

    def __str__(self) -> str:
        """Includes the login, because two users may have the same name."""
        return f"{self.display_name} ({self.login})" if self.display_name != self.login else self.login

    @property
    def display_name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.login

    @classmethod
    def normalize_username(cls, username: str) -> str:
        return composed(username)  # keeps the case

    def save(self, *args: Any, **options: Any) -> None:
        """Normalizes the login; an existing login stays as it is while another user has the normalized form."""
        normalized_login = composed(self.login)
        if self.login != normalized_login:
            others = User.objects.filter(login=normalized_login)
            if self.is_new or not others.exclude(pk=self.pk).exists():
                self.login = normalized_login
        self.time_zone = self.time_zone or "UTC"
        super().save(*args, **options)
        self.is_password_removed = False

    @property
    def untracked_change_text(self) -> str:  # type: ignore[override]
        if self.is_password_removed:
            return "The password was removed."
        return "The password was changed." if self._password is not None else ""  # type: ignore[attr-defined]  # of Django

    def set_password(self, raw_password: str | None) -> None:
        self.is_password_removed = raw_password is None and self.has_usable_password()
        super().set_password(raw_password)

    def set_unusable_password(self) -> None:
        self.is_password_removed = self.has_usable_password()
        super().set_unusable_password()

    @property
    def has_read_only_key(self) -> bool:
        return self.access_key is not None and self.access_key.read_only

    @property
    def zone(self) -> tzinfo:
        return time_zones.zone_of(self.time_zone)

    @property
    def is_active(self) -> bool:  # type: ignore[override]  # Django's name for our column
        return self.active

    @cached_property
    def role_names(self) -> frozenset[str]:
        """All roles of the user, including contained ones; with a scoped access key only those in its scope."""
        return roles.names_of_user(self.pk)

    def change_password(self, password: str) -> None:
        """Sets the password and ends all sessions; named keys are kept."""
        with transaction.atomic():
            self.set_password(password)
            self.save(update_fields=["password"])
            self.end_sessions()

    def end_sessions(self, except_key: str = "") -> None:
        """Ends all sessions (except the one with this key) and deletes tokens and the keys from API sign-ins."""
        Session.objects.filter(user=self).exclude(session_key=except_key).delete()
        AccessKey.objects.filter(user=self, kind__in=AccessKey.SESSION_KINDS).delete()

    def limit_to_roles(self, scope: Collection[str]) -> None:
        """Limits the user to these roles (ids): a scoped key grants only what both the key and its user have."""
        scope_names = roles.effective_names(scope)
        self.role_names = scope_names if roles.ADMIN in self.role_names else scope_names & self.role_names

    def has_role(self, name: str) -> bool:
        return name in self.role_names or roles.ADMIN in self.role_names

    # Required by Django's admin.

    @property
    def is_staff(self) -> bool:
        return self.active and any(self.has_role(name) for name in (roles.ADMIN, *roles.AREA_ROLES.values()))

    @property
    def is_superuser(self) -> bool:
        return self.active and roles.ADMIN in self.role_names

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.has_module_perms(perm.partition(".")[0])

    def has_module_perms(self, app_label: str) -> bool:
        return self.active and self.has_role(roles.AREA_ROLES.get(app_label, roles.ADMIN))
