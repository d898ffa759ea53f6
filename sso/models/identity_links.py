"""Links between accounts and provider identities. The first sign-in creates a link, and later ones follow it."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from accounts import privileges
from system.records.record import Record


class IdentityLink(Record):
    """An account holds at most one identity of each provider, and an identity belongs to one account."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identity_links", editable=False
    )
    issuer = models.CharField(max_length=700, db_collation="C", editable=False)
    sub = models.CharField("subject", max_length=255, db_collation="C", editable=False)
    is_unapproved = models.BooleanField(
        "created before approval",
        default=False,
        editable=False,
        help_text="Created before the connection was approved. Gives no access to accounts with a protected role.",
    )
    is_email_unverified = models.BooleanField(
        "email not verified",
        default=False,
        editable=False,
        help_text="The email was not verified by the provider, so it is not used to match accounts.",
    )

    class Meta(Record.Meta):
        db_table = "sso_identity_link"
        verbose_name = "identity link"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "sub"], name="sso_identity_once"),
            models.UniqueConstraint(fields=["user", "issuer"], name="sso_identity_one_per_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"

    def mark_email_verified(self, email: str) -> None:
        """Use the account's email for matching from now on, if it is the verified address."""
        if self.user.email.lower() == email.lower():
            self.is_email_unverified = False
            self.save(update_fields=["is_email_unverified"])

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Reset the link: the next sign-in matches by User field again."""
        # An administrator of single sign-on must not give another identity access to an account with more rights.
        if not privileges.may_change_account(self.user):
            raise ValidationError("Only an administrator can reset the link of an account that has a protected role.")
        return super().delete(*args, **options)
