"""The table of tasks as an ordinary Django model, over the same database table."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Company, Group, User
from system.records.record import NewSysId
from tableapi.models import Table


def reference(target: Any, **options: Any) -> Any:
    """A reference without a reverse name."""
    return models.ForeignKey(target, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", **options)


def short_text(length: int = 255) -> Any:
    return models.CharField(max_length=length, null=True, blank=True)


def long_text() -> Any:
    return models.TextField(null=True, blank=True)


def timestamp() -> Any:
    return models.DateTimeField(null=True, blank=True)


class Service(models.Model):
    sys_id = models.CharField(max_length=32, primary_key=True, db_default=NewSysId())
    name = short_text()

    class Meta:
        managed = False
        db_table = '"records"."service"'

    def __str__(self) -> str:
        return self.name or self.sys_id


class Task(models.Model):
    sys_id = models.CharField(max_length=32, primary_key=True, db_default=NewSysId(), editable=False)
    sys_created_at = models.DateTimeField(auto_now_add=True)
    sys_created_by = reference(User, db_column="sys_created_by", editable=False)
    sys_updated_at = models.DateTimeField(auto_now=True)
    sys_updated_by = reference(User, db_column="sys_updated_by", editable=False)
    sys_version = models.IntegerField(default=0, editable=False)
    sys_db_table_id = models.ForeignKey(
        Table, on_delete=models.PROTECT, related_name="+", db_column="sys_db_table_id", editable=False
    )
    number = models.CharField(max_length=40, editable=False)
    state = models.CharField(max_length=10, default="1", null=True, blank=True)
    priority = models.CharField(max_length=10, default="4", null=True, blank=True)
    urgency = models.CharField(max_length=10, default="3", null=True, blank=True)
    impact = models.CharField(max_length=10, default="3", null=True, blank=True)
    assigned_user = reference(User, db_column="assigned_user")
    assignment_group = reference(Group, db_column="assignment_group")
    wf_executing_activity = short_text()
    closed_by = reference(User, db_column="closed_by")
    followers_list: Any = ArrayField(models.CharField(max_length=32), null=True, blank=True)
    parent_id = reference("self", db_column="parent_id")
    opened_by = reference(User, db_column="opened_by")
    caller = reference(User, db_column="caller")
    contact = reference(User, db_column="contact")
    service = reference(Service, db_column="service")
    screenshot = short_text()
    short_description = short_text()
    work_notes = long_text()
    active = models.BooleanField(default=True, null=True)
    closed_at = timestamp()
    sla_due = timestamp()
    description = long_text()
    subject = short_text()
    additional_comments = long_text()
    comments = long_text()
    opened_at = timestamp()
    due_date = timestamp()
    attention_required = models.BooleanField(default=False, null=True)
    company = reference(Company, db_column="company")
    approval_state = models.CharField(max_length=20, default="not_requested", null=True, blank=True)
    display_name = short_text()
    state_changed_at = timestamp()

    class Meta:
        managed = False
        db_table = '"records"."task"'

    def __str__(self) -> str:
        return self.number

    objects: ClassVar[models.Manager["Task"]] = models.Manager()
