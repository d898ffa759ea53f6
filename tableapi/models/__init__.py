"""Tables, columns, choices, views and rules of the Table API; `tableapi.design` saves them."""

from tableapi.models.attached import Attachment, AttachmentPiece, Comment, Follower, Notification, NotificationPosition
from tableapi.models.catalogue_version import State
from tableapi.models.imports import Import, ImportMapping, ImportPiece
from tableapi.models.queues import DeferredRecord, IdempotentAnswer
from tableapi.models.rules import Rule, SetRule
from tableapi.models.tables import Choice, Column, Table, View, ViewColumn
from tableapi.models.webhooks import Webhook, WebhookDelivery, WebhookPosition

__all__ = [
    "Attachment", "AttachmentPiece", "Choice", "Column", "Comment", "DeferredRecord", "Follower", "IdempotentAnswer",
    "Import", "ImportMapping", "ImportPiece", "Notification", "NotificationPosition", "Rule", "SetRule", "State",
    "Table", "View", "ViewColumn", "Webhook", "WebhookDelivery", "WebhookPosition",
]  # fmt: skip
