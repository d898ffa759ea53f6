"""Access rules, and rules that set a column when another one changes."""

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from accounts.models import Role
from system.records.history import history_field
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, SYS_COLUMNS
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.models.tables import Column, Table


class Rule(CatalogueRecord):
    """Which roles may create, read, write or delete which records."""

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
        errors = self._role_errors() | self._column_errors()
        if errors:
            raise ValidationError(errors)

    def _role_errors(self) -> dict[str, str]:
        existing_roles = set(Role.objects.filter(sys_id__in=self.roles).values_list("sys_id", flat=True))
        stored = Rule.objects.filter(pk=self.pk).values_list("roles", flat=True).first() if not self.is_new else None
        if set(self.roles) - existing_roles - set(stored or ()):
            return {"roles": "This role does not exist."}
        if self.roles and not existing_roles:
            # Without roles, it would apply to everyone.
            return {"roles": "The roles of this rule were deleted. Select other roles."}
        self.roles = [sys_id for sys_id in dict.fromkeys(self.roles) if sys_id in existing_roles]
        return {}

    def _column_errors(self) -> dict[str, str]:
        table = Table.objects.filter(pk=self.table_id).first()
        name = self.column_name
        if table is None or name in ("", "*", OWN_TABLE_COLUMN) or name in SYS_COLUMNS:
            return {}
        is_defined = Column.objects.filter(table__in=table.lineage, name=name).exists()
        return {} if is_defined else {"column_name": f"{table.name} has no column with this name."}

    @classmethod
    def for_column(cls, column: Column) -> "models.QuerySet[Rule]":
        """The rules to delete with the column, which would otherwise apply to the next column with its name. Rules for
        any table also apply to other columns, so they stay."""
        family = [column.table, *column.table.descendants]
        return cls.objects.filter(table__in=family, column_name=column.name)

    @property
    def subject(self) -> str:
        """The subject of the rule, such as `read task.state`."""
        try:
            table = self.table.name if self.table else "any table"
        except Table.DoesNotExist:  # the rule is deleted after its table
            table = "(deleted table)"
        return f"{self.operation} {table}{'.' if self.column_name else ''}{self.column_name}"

    def __str__(self) -> str:
        names = Role.objects.filter(sys_id__in=self.roles).order_by("name").values_list("name", flat=True)
        # Several rules often have the same subject, so roles and condition are needed to distinguish them.
        roles_text = f" for {', '.join(names) or 'deleted roles'}" if self.roles else ""
        return f"{self.subject}{roles_text}{f' where {self.condition}' if self.condition else ''}"


# Not `SetOnChangeRule`, because migrations and the URLs of its admin pages use this name.
class SetRule(CatalogueRecord):
    """Sets a column when another column changes."""

    table_columns = ("column", "watched", "value", "set_to", "clears")
    display_column = "set_to"

    column = models.ForeignKey(
        Column,
        on_delete=models.CASCADE,
        related_name="set_rules",
        help_text="The column to set. Callers cannot write it.",
    )
    watched = models.ForeignKey(
        Column,
        on_delete=models.CASCADE,
        related_name="watching_rules",
        verbose_name="watched column",
        help_text="Another column of the same table.",
    )
    value = models.TextField(
        "new value",
        blank=True,
        default="",
        help_text="The column is set when the watched column gets this value. Leave empty for any change.",
    )
    set_to = models.TextField(
        help_text="A value. For a date or time also javascript:gs.now(), for a user javascript:gs.getUserID()."
    )
    clears = models.BooleanField(
        "emptied afterwards",
        default=False,
        help_text="Empty the column when the watched column changes from the new value to another one.",
    )
    history = history_field()

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_set_on_change"
        verbose_name = "set-on-change rule"
        ordering = ["column", "sys_id"]
        constraints = [models.UniqueConstraint(fields=["column"], name="set_rule_of_column")]

    def clean(self) -> None:
        super().clean()
        if not self.column_id or not self.watched_id:
            return  # reported by the field validation
        column, watched = self.column, self.watched
        others = SetRule.objects.exclude(pk=self.pk) if not self.is_new else SetRule.objects.all()
        if column.table.is_system or watched.table_id != column.table_id or watched.pk == column.pk:
            raise ValidationError({"watched": "Select two different columns of the same designed table."})
        if others.filter(column=watched).exists() or others.filter(watched=column).exists():
            raise ValidationError({"watched": "A column that is set by a rule cannot be watched by another rule."})
        if not watched.column_type.can_be_watched:
            raise ValidationError({"watched": f"A column of type {watched.type} cannot be watched."})
        if column.mandatory or column.is_unique or not column.column_type.can_be_watched:
            raise ValidationError({"column": "A column that is mandatory, unique or of this type cannot be set."})

    def __str__(self) -> str:
        return f"{self.column} when {self.watched.name} {f'becomes {self.value}' if self.value else 'changes'}"
