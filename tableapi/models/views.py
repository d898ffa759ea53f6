"""Form views: named lists of column paths."""

from django.db import models

from system.records.history import history_field
from tableapi.models.catalogue_version import CatalogueRecord, unique
from tableapi.models.tables import Table


class View(CatalogueRecord):
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
