"""Which identity of which provider is which account: found at the first sign-in, decisive from then on."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from accounts import roles
from sso import trust
from system.record import Record


class IdentityLink(Record):
    """An account holds at most one identity of each provider, and an identity belongs to one account."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identity_links", editable=False
    )
    issuer = models.CharField(max_length=700, db_collation="C", editable=False)
    sub = models.CharField("subject", max_length=255, db_collation="C", editable=False)
    is_unapproved = models.BooleanField(
        "made before approval",
        default=False,
        editable=False,
        help_text="Made while the connection waited for an approval: opens no account that holds a guarded role.",
    )

    class Meta(Record.Meta):
        db_table = "sso_identity_link"
        verbose_name = "identity link"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["issuer", "sub"], name="sso_identity_once"),
            models.UniqueConstraint(fields=["user", "issuer"], name="sso_identity_one_per_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"

    def delete(self, *positional: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Reset the link: the next sign-in matches by User field again."""
        if not may_reset(self):
            raise ValidationError("Only an administrator resets the link of an administrator.")
        return super().delete(*positional, **options)


def may_reset(link: IdentityLink) -> bool:
    """Whoever only runs single sign-on must not open an administrator's account to another identity."""
    return trust.is_trusted() or not link.user.has_role(roles.ADMIN)
