"""Access rules: which roles may create, read, write or delete which records."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Role
from system.records.history import history_field
from tableapi.models import validation
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.models.tables import Column, Table


class Rule(CatalogueRecord):
    table_columns = (
        "operation", "table", "column_name", "roles", "condition", "admin_overrides", "active", "description",
    )  # fmt: skip
    display_column = "description"
    references = {"roles": "sys_role"}

    class Operation(models.TextChoices):
        CREATE = "create", "Create"
        READ = "read", "Read"
        WRITE = "write", "Write"
        DELETE = "delete", "Delete"

    operation = models.CharField(max_length=10, choices=Operation.choices)
    table = models.ForeignKey(
        Table,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="rules",
        help_text="Leave empty for any table.",
    )
    column_name = models.CharField(
        "column",
        max_length=63,
        blank=True,
        default="",
        help_text="Leave empty for the whole record, or use * for all columns.",
    )
    roles = ArrayField(models.CharField(max_length=32, db_collation="C"), default=list, blank=True)
    condition = models.TextField(blank=True, default="")
    admin_overrides = models.BooleanField(default=True, help_text="Administrators bypass this rule.")
    active = models.BooleanField(default=True)
    description = models.CharField(max_length=255, blank=True, default="")
    history = history_field()

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_acl"
        verbose_name = "access rule"
        ordering = ["table", "column_name", "operation", "sys_id"]

    def clean(self) -> None:
        super().clean()
        validation.check_rule(self)

    @classmethod
    def for_column(cls, column: Column) -> "models.QuerySet[Rule]":
        """The rules to delete with the column, which would otherwise apply to the next column with its name. Rules for
        any table also apply to other columns, so they stay."""
        family = [column.table, *column.table.descendants]
        return cls.objects.filter(table__in=family, column_name=column.name)

    @property
    def subject(self) -> str:
        """The subject of the rule, such as `read task.state`."""
        table = self.table.name if self.table else "any table"
        return f"{self.operation} {table}{'.' if self.column_name else ''}{self.column_name}"

    def __str__(self) -> str:
        names = Role.objects.filter(sys_id__in=self.roles).order_by("name").values_list("name", flat=True)
        # Several rules often have the same subject, so roles and condition are needed to distinguish them.
        roles_text = f" for {', '.join(names) or 'deleted roles'}" if self.roles else ""
        return f"{self.subject}{roles_text}{f' where {self.condition}' if self.condition else ''}"
