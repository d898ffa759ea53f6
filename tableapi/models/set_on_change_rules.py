"""Columns that are set when another column changes."""

from django.core.exceptions import ValidationError
from django.db import models

from system.records.history import history_field
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.models.tables import Column


# Not `SetOnChangeRule`, because migrations and the URLs of its admin pages use this name.
class SetRule(CatalogueRecord):
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
