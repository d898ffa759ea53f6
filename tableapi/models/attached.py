"""Comments, attachments and followers of records in any table, and notifications about changes."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from accounts.models import User
from system.records.record import NewSysId, Record
from tableapi.models.change_position import ChangePosition

MAX_COMMENT_LENGTH = 10_000
MAX_FILE_NAME_LENGTH = 255


class AttachedRow(Record):
    # The root table of the record, by its key in `sys_change`.
    table_key = models.CharField(max_length=63, db_collation="C", editable=False)
    record_id = models.CharField(max_length=32, db_collation="C", editable=False)
    # The deletion log entry of a deleted record. The row is unreadable, and the database deletes it with the entry.
    deletion_id = models.CharField(max_length=32, db_collation="C", null=True, editable=False)

    class Meta(Record.Meta):
        abstract = True
        indexes = [models.Index(fields=["record_id", "sys_id"], name="%(class)s_record")]


class Comment(AttachedRow):
    """Listed in the catalogue for its access rules; the table endpoints cannot open it."""

    table_columns = ("table_key", "record_id", "text", "mentions")
    references: ClassVar[dict[str, str]] = {"mentions": "user"}

    text = models.TextField(max_length=MAX_COMMENT_LENGTH)
    # The users whom the text mentions.
    mentions = ArrayField(models.CharField(max_length=32, db_collation="C"), default=list, editable=False)

    class Meta(AttachedRow.Meta):
        db_table = "sys_comment"

    def __str__(self) -> str:
        return str(self.pk)  # the deletion log shows it to callers who may not read the text


class Attachment(AttachedRow):
    """A file; its bytes are the rows of `sys_attachment_piece`, which the database deletes with it."""

    file_name = models.CharField(max_length=MAX_FILE_NAME_LENGTH)
    content_type = models.CharField(max_length=100)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta(AttachedRow.Meta):
        db_table = "sys_attachment"

    def __str__(self) -> str:
        return self.file_name


class AttachmentPiece(models.Model):
    # A constraint in the migration deletes the pieces with their attachment.
    attachment = models.ForeignKey(Attachment, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "sys_attachment_piece"
        constraints = [models.UniqueConstraint(fields=["attachment", "number"], name="attachment_piece_number")]


class Follower(models.Model):
    table_key = models.CharField(max_length=63, db_collation="C")
    record_id = models.CharField(max_length=32, db_collation="C")
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "sys_follower"
        constraints = [models.UniqueConstraint(fields=["record_id", "table_key", "user"], name="follower_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.record_id}"


class Notification(models.Model):
    """Tells a user about a change. The text is built when it is read, from what the user can read at that time."""

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, db_index=False)
    change_id = models.BigIntegerField()
    reason = models.CharField(max_length=10)
    # The record, identified as in its attached rows.
    table_key = models.CharField(max_length=63, db_collation="C")
    record_id = models.CharField(max_length=32, db_collation="C")
    comment_id = models.CharField(max_length=32, db_collation="C", null=True)
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    # When the email is due; NULL if it was sent or none is needed.
    email_at = models.DateTimeField(null=True)
    email_attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        db_table = "sys_notification"
        constraints = [models.UniqueConstraint(fields=["user", "change_id"], name="notification_once")]
        indexes = [
            models.Index(fields=["user", "id"], name="notification_of_user"),
            models.Index(fields=["record_id"], name="notification_record"),
            models.Index(fields=["email_at"], condition=models.Q(email_at__isnull=False), name="notification_email"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.reason} {self.record_id}"


class NotificationPosition(ChangePosition):
    class Meta:
        db_table = "sys_notification_position"
