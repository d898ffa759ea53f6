"""The notification settings of users: the reasons that count. A user without a row is notified of all, by email too."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models.users import User


class Reason(models.TextChoices):
    ASSIGNED = "assigned", "A record is assigned to me"
    MENTIONED = "mentioned", "Somebody mentions me in a comment"
    COMMENTED = "commented", "Somebody comments on a record that I follow"
    CHANGED = "changed", "A record that I follow changes"


def all_reasons() -> list[str]:
    return list(Reason.values)


class NotificationChoice(models.Model):
    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True)
    reasons = ArrayField(models.CharField(max_length=10, choices=Reason.choices), default=all_reasons, blank=True)
    # A reason that is only here has no effect, because an email is sent for a notification in the list.
    email_reasons = ArrayField(models.CharField(max_length=10, choices=Reason.choices), default=all_reasons, blank=True)

    class Meta:
        db_table = "accounts_notification_choice"

    @classmethod
    def of(cls, user: User) -> "NotificationChoice":
        return cls.objects.filter(user=user).first() or cls(user=user)

    def __str__(self) -> str:
        return str(self.user)
