"""The public keys of providers, and the fetch state of each pair of provider URL and Realm."""

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from system.records.record import Record


class IdpCertificate(Record):
    """One public key of a provider, as it was first published. Stored keys are never modified."""

    table_columns = ("kid", "url_idp", "realm", "json")
    display_column = "kid"

    kid = models.CharField(max_length=256, db_collation="C", editable=False)
    url_idp = models.CharField("provider URL", max_length=500, db_collation="C", editable=False)
    realm = models.CharField(max_length=64, db_collation="C", editable=False)
    json = models.JSONField("JSON", editable=False)

    class Meta(Record.Meta):
        db_table = "idp_certificate"
        verbose_name = "IdP certificate"
        ordering = ["url_idp", "realm", "kid"]
        constraints = [models.UniqueConstraint(fields=["url_idp", "realm", "kid"], name="idp_certificate_once")]

    def __str__(self) -> str:
        return self.kid

    def save(self, *args: Any, **options: Any) -> None:
        if not (self.kid and self.json):
            raise ValidationError("Certificates come from the provider. Use “Update certificates” on its connection.")
        super().save(*args, **options)

    @property
    def as_text(self) -> str:
        return json.dumps(self.json, indent=2, sort_keys=True)

    @classmethod
    def of_pair(cls, url_idp: str, realm: str) -> "models.QuerySet[IdpCertificate]":
        return cls.objects.filter(url_idp=url_idp, realm=realm)


class CertificatePair(models.Model):
    """When the keys of a pair were fetched, and the outcome. Updates of the keys lock this row."""

    url_idp = models.CharField(max_length=500, db_collation="C")
    realm = models.CharField(max_length=64, db_collation="C")
    # Each fetch takes a number first, so that a late response never overwrites a newer one.
    last_drawn = models.BigIntegerField(default=0)
    last_applied = models.BigIntegerField(default=0)
    fetched_at = models.DateTimeField(null=True)
    # When keys were last requested for an unknown kid, and when any request was last answered, successfully or not.
    asked_for_unknown_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    warning = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")

    class Meta:
        db_table = "sso_certificate_pair"
        constraints = [models.UniqueConstraint(fields=["url_idp", "realm"], name="sso_certificate_pair_once")]

    def __str__(self) -> str:
        return f"{self.url_idp} {self.realm}"

    @classmethod
    def get_locked(cls, url_idp: str, realm: str) -> "CertificatePair":
        """The row, created if necessary and locked until the end of the transaction."""
        return cls.objects.select_for_update().get_or_create(url_idp=url_idp, realm=realm)[0]

    def reset(self) -> None:
        """Reset everything except the numbers, which requests in progress need."""
        self.fetched_at = self.asked_for_unknown_at = self.answered_at = None
        self.warning = self.failure = ""
        self.save()
