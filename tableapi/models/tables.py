"""Tables, with their columns, choices and form views."""

from typing import Any

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from system.records.history import history_field
from tableapi.catalogue import column_types
from tableapi.catalogue.column_type import ColumnType
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.models import validation
from tableapi.models.catalogue_version import CatalogueRecord, unique

MAX_NAME_LENGTH = 63
validate_name = RegexValidator(
    r"\A[a-z][a-z0-9_]{0,62}\Z",
    "A name must consist of at most 63 lowercase letters, digits and underscores, and start with a letter.",
)
validate_number_prefix = RegexValidator(
    r"\A[A-Z]{1,10}\Z", "A prefix must consist of 1 to 10 uppercase letters (A to Z)."
)


class Table(CatalogueRecord):
    """A table of the API: one designed by an administrator, or a product table."""

    table_columns = ("name", "label", "parent", "number_prefix", "deferred_create")

    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True, validators=[validate_name])
    label = models.CharField(max_length=255)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    number_prefix = models.CharField(max_length=10, blank=True, default="", validators=[validate_number_prefix])
    deferred_create = models.BooleanField(default=False)
    is_system = models.BooleanField(default=False, editable=False)
    history = history_field()
    fixed_fields = ("name", "parent", "is_system")

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_db_table"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def lineage(self) -> "list[Table]":
        """This table, then its parents upwards."""
        return [self] if self.parent is None else [self, *self.parent.lineage]

    @property
    def descendants(self) -> "list[Table]":
        return [table for child in self.children.all() for table in (child, *child.descendants)]

    def clean(self) -> None:
        super().clean()
        validation.check_table(self)

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        # Checked first, for a clearer message than Django's.
        validation.check_table_deletion(self)
        return super().delete(*args, **options)


class Column(CatalogueRecord):
    table_columns = (
        "table", "name", "label", "type", "reference_table", "mandatory", "is_unique", "read_only",
        "default_value", "max_length", "is_display", "is_indexed", "converted_from_text",
    )  # fmt: skip

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="columns")
    name = models.CharField(max_length=MAX_NAME_LENGTH, validators=[validate_name])
    label = models.CharField(max_length=255)
    type = models.CharField(max_length=20, choices=column_types.choices, default="string")
    # Not PROTECT, because a table that refers to itself could never be deleted.
    reference_table = models.ForeignKey(
        Table, null=True, blank=True, on_delete=models.RESTRICT, related_name="referring_columns"
    )
    mandatory = models.BooleanField(default=False)
    is_unique = models.BooleanField("unique", default=False)
    read_only = models.BooleanField(default=False)
    default_value = models.TextField(blank=True, default="")
    # Replaces Django's minimum of 0.
    max_length = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1, validation.MAX_LENGTH_NEEDS_TEXT)]
    )
    is_display = models.BooleanField("display value", default=False)
    is_indexed = models.BooleanField("indexed", default=False)
    converted_from_text = models.BooleanField(default=False)
    # The database name of a product column. Empty for designed and custom columns, which use `name`.
    physical_name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, default="", editable=False)
    history = history_field()
    fixed_fields = ("name", "table", "reference_table")

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_db_column"
        ordering = ["table", "sys_id"]
        constraints = [unique("column_once", "The table already has a column with this name.", "table", "name")]

    def __str__(self) -> str:
        return f"{self.table.name}.{self.name}"

    def page_title(self) -> str:
        return f"Column {self.name} of {self.table.name}"

    @property
    def id(self) -> str:
        return self.sys_id

    @property
    def column_type(self) -> ColumnType:
        return COLUMN_TYPES[self.type]

    @property
    def is_designed(self) -> bool:
        """Whether this is a custom column or a column of a designed table."""
        return not self.physical_name

    @property
    def database_name(self) -> str:
        return self.physical_name or self.name

    def clean(self) -> None:
        super().clean()
        validation.check_column(self)


class Choice(CatalogueRecord):
    table_columns = ("column", "value", "label", "position")

    column = models.ForeignKey(Column, on_delete=models.CASCADE, related_name="choices")
    value = models.CharField(max_length=100)
    label = models.CharField(max_length=255)
    position = models.IntegerField(default=0)
    history = history_field()

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_choice"
        ordering = ["position", "sys_id"]
        constraints = [unique("choice_once", "Each value must be unique within the column.", "column", "value")]

    def __str__(self) -> str:
        return self.label

    def clean(self) -> None:
        super().clean()
        validation.check_choice(self)


class View(CatalogueRecord):
    """A form view: a named list of column paths."""

    table_columns = ("table", "name")

    table = models.ForeignKey(Table, on_delete=models.CASCADE, related_name="views")
    name = models.CharField(max_length=100)
    history = history_field()
    fixed_fields = ("table",)

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_ui_view"
        ordering = ["table", "name"]
        constraints = [unique("view_once", "The table already has a view with this name.", "table", "name")]

    def __str__(self) -> str:
        return f"{self.table.name}: {self.name}"

    def page_title(self) -> str:
        return f"View {self.name} of {self.table.name}"


class ViewColumn(CatalogueRecord):
    """One path of a view, such as `assigned_user.company.name`."""

    table_columns = ("view", "path", "section", "position")
    display_column = "path"

    view = models.ForeignKey(View, on_delete=models.CASCADE, related_name="columns")
    path = models.CharField(max_length=400)
    # The heading of the form under which the column is shown.
    section = models.CharField(max_length=100, blank=True, default="")
    position = models.IntegerField(default=0)
    history = history_field()

    class Meta(CatalogueRecord.Meta):
        db_table = "sys_ui_view_column"
        ordering = ["position", "sys_id"]
        constraints = [unique("view_column_once", "Each path can occur only once in a view.", "view", "path")]

    def __str__(self) -> str:
        return self.path
