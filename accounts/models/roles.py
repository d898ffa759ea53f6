"""Roles and their grants."""

import re
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from accounts import roles
from system.records.history import history_field
from system.records.record import Record


class Role(Record):
    """A role. Users with this role also have the roles that it contains."""

    table_columns = ("name", "description", "contains", "grantable_by_sign_in")
    references = {"contains": "sys_role"}

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(max_length=255, blank=True, default="")
    contains = ArrayField(models.CharField(max_length=32, db_collation="C"), default=list, blank=True)
    grantable_by_sign_in = models.BooleanField(
        "grantable by sign-in", default=True, help_text="Whether a provider may grant this role at sign-in."
    )
    history = history_field()

    class Meta(Record.Meta):
        db_table = "sys_role"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        self._check_name()
        existing_ids = set(Role.objects.filter(sys_id__in=self.contains).values_list("sys_id", flat=True))
        self.contains = [sys_id for sys_id in dict.fromkeys(self.contains) if sys_id in existing_ids]
        if not self.is_new and not roles.containing_ids(self.pk).isdisjoint(self.contains):
            raise ValidationError({"contains": "A role cannot contain itself, directly or through other roles."})

    def save(self, *args: Any, **options: Any) -> None:
        self._check_name()
        super().save(*args, **options)

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        if self._stored_name() in roles.SHIPPED_ROLES:
            raise ValidationError("This role is part of the product and cannot be deleted.")
        return super().delete(*args, **options)

    def _check_name(self) -> None:
        if re.search(r"[\x00-\x1f]", self.name) or self.name != self.name.strip():
            raise ValidationError(
                {"name": "A role name must not contain control characters, and must not start or end with a space."}
            )
        stored_name = self._stored_name()
        if stored_name in roles.SHIPPED_ROLES and self.name != stored_name:
            raise ValidationError({"name": "This role is part of the product and cannot be renamed."})

    def _stored_name(self) -> str | None:
        """Reads the name from the database, because this object may hold a changed one."""
        return None if self.is_new else Role.objects.filter(pk=self.pk).values_list("name", flat=True).first()


class UserRole(Record):
    """A role granted to a user, and where the grant came from."""

    table_columns = ("user", "role", "source")

    MANUAL = "manual"
    PROVIDER = "provider"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants")
    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="grants")
    source = models.CharField(
        max_length=20,
        choices=[(MANUAL, "granted here"), (PROVIDER, "granted by the identity provider")],
        default=MANUAL,
        editable=False,
    )
    history = history_field()

    class Meta(Record.Meta):
        db_table = "sys_user_role"
        verbose_name = "grant"
        constraints = [models.UniqueConstraint(fields=["user", "role", "source"], name="user_role_once")]

    def __str__(self) -> str:
        return f"{self.user} has {self.role}"
