"""Webhooks: subscriptions of addresses to the changes of a table, and their deliveries."""

import base64
import secrets
from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from system import encryption
from system.records.history import history_field
from system.records.record import Record
from tableapi.models.change_position import ChangePosition
from tableapi.models.tables import Table

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
# How long the old secret also signs after a rotation.
SECRET_OVERLAP = timedelta(days=1)
MAX_ANSWER_LENGTH = 1024


class Webhook(Record):
    """Not in the catalogue: only the administration shows it."""

    class Operation(models.TextChoices):
        CREATE = "create", "Create"
        UPDATE = "update", "Update"
        DELETE = "delete", "Delete"

    secret_columns = encrypted_columns = frozenset({"secret", "old_secret"})

    name = models.CharField(max_length=100)
    url = models.CharField(
        "URL",
        max_length=2000,
        help_text="The address that receives the changes. It must begin with https:// and can have any port.",
    )
    table = models.ForeignKey(Table, on_delete=models.CASCADE)
    user = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        help_text="The receiver gets only what this user may read when a change is sent. "
        "While the user is inactive, the webhook pauses.",
    )
    operations = ArrayField(models.CharField(max_length=6, choices=Operation.choices))
    condition = models.TextField(
        blank=True,
        default="",
        help_text="An encoded query, such as priority=1^active=true. Other records are skipped. "
        "Leave empty for all records.",
    )
    columns = ArrayField(
        models.CharField(max_length=255),
        blank=True,
        help_text="Names of columns, separated by commas. Leave empty for all columns that the user may read now. "
        "Columns that are created later are not added.",
    )
    active = models.BooleanField(
        default=True, help_text="If unchecked, nothing is sent, and changes made in this time will not be sent later."
    )
    secret = models.TextField(editable=False)
    old_secret = models.TextField(blank=True, default="", editable=False)
    old_secret_until = models.DateTimeField(null=True, editable=False)
    # The receiver did not answer: nothing is sent before this time.
    silent_until = models.DateTimeField(null=True, editable=False)
    history = history_field(omit=("secret", "old_secret", "old_secret_until", "silent_until"))

    class Meta(Record.Meta):
        db_table = "sys_webhook"
        ordering = ["name", "sys_id"]

    def __str__(self) -> str:
        return self.name

    def generate_secret(self) -> str:
        """Sets a new secret and returns it. An earlier one also signs until the overlap ends."""
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
        if self.secret:
            self.old_secret, self.old_secret_until = self.secret, timezone.now() + SECRET_OVERLAP
            self.untracked_change_text = "The secret was rotated."
        self.secret = encryption.encrypt(secret)
        return secret

    def signing_keys(self) -> list[bytes]:
        """The current key first. Raises `encryption.DecryptionFailed`."""
        has_overlap = self.old_secret_until is not None and self.old_secret_until > timezone.now()
        stored_secrets = [self.secret, self.old_secret] if has_overlap else [self.secret]
        return [base64.b64decode(encryption.decrypt(secret).removeprefix(SECRET_PREFIX)) for secret in stored_secrets]


class WebhookDelivery(models.Model):
    """A change to send to a webhook. Its body is built when it is sent. The ids have the order of the changes."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        DELIVERED = "delivered", "delivered"
        SKIPPED = "skipped", "skipped"
        PARKED = "parked", "parked"
        FAILED = "failed", "failed"  # a test, which is not repeated

    # The same in every repetition. Random, because a restored database would assign the same numbers again.
    message_id = models.UUIDField(db_default=RandomUUID(), editable=False)
    # A constraint in the migration deletes the deliveries with their webhook.
    webhook = models.ForeignKey(Webhook, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    # The record as in `sys_change`, and its change. All are empty for a test.
    table_key = models.CharField(max_length=63, db_collation="C", blank=True)
    record_id = models.CharField("record", max_length=32, db_collation="C", blank=True)
    change_id = models.BigIntegerField(null=True)
    operation = models.CharField(max_length=6)
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    created_at = models.DateTimeField("created", db_default=Now())
    due_at = models.DateTimeField("next attempt", null=True)
    attempts = models.PositiveIntegerField(default=0)
    first_attempt_at = models.DateTimeField("first attempt", null=True)
    attempted_at = models.DateTimeField("last attempt", null=True)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True, default="")
    reason = models.TextField(blank=True, default="")

    class Meta:
        db_table = "sys_webhook_delivery"
        ordering = ["-id"]
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(
                fields=["webhook", "due_at", "id"], condition=models.Q(state="waiting"), name="webhook_delivery_due"
            ),
            models.Index(
                fields=["webhook", "record_id", "table_key", "id"],
                condition=models.Q(state__in=["waiting", "parked"]),
                name="webhook_delivery_record",
            ),
        ]

    def __str__(self) -> str:
        """The header `webhook-id`."""
        return f"msg_{self.message_id.hex}"


class WebhookPosition(ChangePosition):
    class Meta:
        db_table = "sys_webhook_position"
