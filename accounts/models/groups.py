"""Groups and their members."""

from django.db import models

from accounts.models.users import User
from system.records.history import history_field
from system.records.record import Record


class Group(Record):
    table_columns = ("name", "active", "grantable_by_sign_in")

    name = models.CharField(max_length=150, unique=True)
    active = models.BooleanField(default=True)
    grantable_by_sign_in = models.BooleanField(
        "grantable by sign-in", default=False, db_default=False, help_text="A provider may add members at sign-in."
    )
    history = history_field()

    class Meta(Record.Meta):
        db_table = "sys_group"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class UserGroup(Record):
    table_columns = ("user", "group", "source")

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    # The connection whose sign-in added the user; empty if a person added the user.
    source = models.CharField(max_length=32, db_collation="C", blank=True, default="", db_default="", editable=False)
    history = history_field()

    class Meta(Record.Meta):
        db_table = "sys_user_group"
        verbose_name = "membership"
        constraints = [models.UniqueConstraint(fields=["user", "group"], name="user_group_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"
