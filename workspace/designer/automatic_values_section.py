"""The section of automatic values: a column is set when another one changes."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tableapi.models import Column, SetRule, Table
from tableapi.models.tables import MAX_NAME_LENGTH

from .rows import LinesField, RowForm, RowSection
from .section import save_record

NO_COLUMN = "The table has no column with this name."


class AutomaticValueForm(RowForm):
    """Columns are given by their names, because they may be new on the same page."""

    column = forms.CharField(max_length=MAX_NAME_LENGTH, label="Set column")
    watched = forms.CharField(max_length=MAX_NAME_LENGTH, label="When this column changes")
    value = LinesField(required=False, label="To", widget=forms.TextInput, help_text="Leave empty for any change.")
    set_to = LinesField(
        label="New value",
        widget=forms.TextInput,
        help_text="A value. For a time also javascript:gs.now(), for a user javascript:gs.getUserID().",
    )
    clears = forms.BooleanField(required=False, label="Clear it when the watched column gets another value")

    def __init__(self, *args: Any, table: Table, record: SetRule | None = None, **options: Any) -> None:
        initial = {}
        if record is not None:
            initial = {name: getattr(record, name) for name in ("value", "set_to", "clears")}
            initial |= {"column": record.column.name, "watched": record.watched.name}
        super().__init__(*args, table=table, record=record, initial=initial, **options)
        columns = [] if table.is_new else list(table.columns.order_by("sys_id").values_list("name", "label"))
        for name in ("column", "watched"):
            # Of the columns that were typed on this page, a refused form knows only the chosen one.
            chosen = self[name].value() or ""
            options_of_select = columns if chosen in dict(columns) else [*columns, (chosen, chosen)]
            self.fields[name].widget = forms.Select(
                choices=[("", "Choose a column"), *filter(lambda item: item[0], options_of_select)],
                attrs={"data-columns": ""},
            )

    @property
    def main_fields(self) -> list[Any]:
        return [self[name] for name in ("column", "watched", "value", "set_to")]

    def save_record(self) -> None:
        cleaned = self.cleaned_data
        columns = {column.name: column for column in Column.objects.filter(table=self.table).select_related("table")}
        if missing := {name: NO_COLUMN for name in ("column", "watched") if cleaned[name] not in columns}:
            raise ValidationError(missing)
        rule = self.record or SetRule()
        rule.column, rule.watched = columns[cleaned["column"]], columns[cleaned["watched"]]
        rule.value, rule.set_to, rule.clears = cleaned["value"], cleaned["set_to"], cleaned["clears"]
        save_record(rule)


class AutomaticValuesSection(RowSection):
    title, template = "Automatic values", "workspace/designer/automatic_values.html"
    prefix, row_form = "automatic", AutomaticValueForm

    def load_records(self) -> Iterable[SetRule]:
        return SetRule.objects.filter(column__table=self.table).select_related("column", "watched")
