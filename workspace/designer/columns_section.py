"""The section of the columns, with their types, options and choices."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.catalogue.definitions import EXTENSIBLE_TABLES, HIDDEN_TABLES
from tableapi.design import change_costs
from tableapi.models import Choice, Column, Table
from tableapi.models.tables import MAX_NAME_LENGTH

from .choice_lines import format_choices, is_editable, parse_choices
from .names import name_of_label
from .rows import LinesField, RowForm, RowSection
from .section import save_record
from .table_section import TableChoiceField
from .type_cards import TYPE_CARDS, TYPES_BY_CONTROL, TypeCard

CUSTOM_PREFIX = "x_"
OPTIONS = ("mandatory", "read_only", "is_unique", "is_indexed", "is_display", "converted_from_text")
FIELDS = ("label", "name", "type", "reference_table", *OPTIONS, "default_value", "max_length")


def reference_tables() -> Any:
    return Table.objects.exclude(name__in=HIDDEN_TABLES).order_by("is_system", "label")


class ColumnForm(RowForm):
    marks = ("mandatory", "read_only", "is_unique", "is_display")
    label = forms.CharField(max_length=255)
    name = forms.CharField(max_length=MAX_NAME_LENGTH, required=False)
    type = forms.ChoiceField(choices=[(name, row.label) for name, row in COLUMN_TYPES.items()], initial="string")
    reference_table = TableChoiceField(
        Table.objects.none(), required=False, label="Refers to", empty_label="Choose a table"
    )
    choices = LinesField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "data-sortable": ""}),
        help_text="One per line, in the order of the list. “New”, or “1: New” to set the stored value.",
    )
    mandatory = forms.BooleanField(required=False, label="Required")
    read_only = forms.BooleanField(required=False, label="Read-only")
    is_unique = forms.BooleanField(required=False, label="Unique")
    is_indexed = forms.BooleanField(required=False, label="Indexed for filters and search")
    is_display = forms.BooleanField(
        required=False,
        label="Names the record",
        help_text="In a new table without record numbers, the first text column does so if none is chosen.",
    )
    converted_from_text = forms.BooleanField(required=False, label="Callers still get plain text")
    default_value = LinesField(required=False, widget=forms.Textarea(attrs={"rows": 1}), label="Default value")
    max_length = forms.IntegerField(required=False, min_value=1, label="Maximum length")

    def __init__(self, *args: Any, table: Table, record: Column | None = None, **options: Any) -> None:
        initial = {}
        if record is not None:
            initial = {name: getattr(record, name) for name in FIELDS}
            self.stored_choices = {choice.value: choice for choice in record.choices.all()}
            labels = {value: choice.label for value, choice in self.stored_choices.items()}
            initial["choices"] = format_choices(labels)
        else:
            self.stored_choices, labels = {}, {}
        super().__init__(*args, table=table, record=record, initial=initial, **options)
        self.fields["reference_table"].queryset = reference_tables()  # type: ignore[attr-defined]
        fixed = [] if record is None else self._fixed_names(record, labels)
        for name in fixed:
            self.fields[name].disabled = True

    def _fixed_names(self, column: Column, labels: dict[str, str]) -> Iterable[str]:
        """Product columns have fixed options, and all columns a fixed name and reference table."""
        if not column.is_designed:
            return self.fields.keys() - {"label"}
        return ("name", "reference_table", *(() if is_editable(labels) else ("choices",)))

    @property
    def is_from_product(self) -> bool:
        return self.record is not None and not self.record.is_designed

    @property
    def cards(self) -> list[TypeCard]:
        """The types that the column can have."""
        if self.record is None:
            return list(TYPE_CARDS.values())
        names = {self.record.type} | (self.record.column_type.convertible_types if self.record.is_designed else set())
        return [card for name, card in TYPE_CARDS.items() if name in names]

    @property
    def type_card(self) -> TypeCard | None:
        return TYPE_CARDS.get(str(self["type"].value()))

    @property
    def is_open(self) -> bool:
        """Stored columns are folded until they are changed."""
        return self.is_bound and bool(self.errors or self.has_changed())

    @property
    def option_fields(self) -> list[Any]:
        return [self[name] for name in OPTIONS]

    @property
    def has_option_errors(self) -> bool:
        return any(name in self.errors for name in (*OPTIONS, "default_value", "max_length"))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        prefix = CUSTOM_PREFIX if self.table.is_system else ""
        cleaned["name"] = cleaned.get("name") or name_of_label(cleaned.get("label", ""), prefix)
        if not cleaned["name"] and "label" in cleaned:
            self.add_error("name", "Enter a name of Latin letters; none can be derived from the label.")
        choices = parse_choices(cleaned.get("choices", ""))
        default = cleaned.get("default_value")
        if cleaned.get("type") == "choice" and not self.is_from_product and self.has_changed():
            if not choices:
                self.add_error("choices", "Enter at least one choice.")
            elif default and default not in choices:
                self.add_error("default_value", f"“{default}” is not the value of a choice.")
        return cleaned

    def column(self) -> Column:
        """The column as it was typed, unsaved."""
        column = self.record or Column(table=self.table)
        for name in FIELDS:
            setattr(column, name, self.cleaned_data[name])
        if not column.column_type.has_target:
            column.reference_table = None
        return column

    def save_record(self) -> None:
        column = self.column()
        if self.record is None:
            save_record(column)
        self._save_choices(column)
        if self.record is not None:
            save_record(column)
            self._delete_choices(column)

    def _lines(self, column: Column) -> dict[str, str]:
        is_edited = column.column_type.has_choices and not self.fields["choices"].disabled
        return parse_choices(self.cleaned_data["choices"]) if is_edited else {}

    def _save_choices(self, column: Column) -> None:
        for position, (value, label) in enumerate(self._lines(column).items()):
            choice = self.stored_choices.get(value) or Choice(column=column, value=value)
            if (choice.label, choice.position) == (label, position) and not choice.is_new:
                continue
            choice.label, choice.position = label, position
            try:
                save_record(choice)
            except ValidationError as error:
                raise ValidationError({"choices": error.messages}) from None

    def _delete_choices(self, column: Column) -> None:
        lines = self._lines(column)
        for value, choice in self.stored_choices.items() if lines else ():
            if value not in lines:
                try:
                    choice.delete()
                except ValidationError as error:
                    raise ValidationError({"choices": error.messages}) from None


class ColumnsSection(RowSection):
    title, template = "Columns", "workspace/designer/columns.html"
    prefix, row_form = "columns", ColumnForm
    cards = tuple(TYPE_CARDS.values())
    types_by_control = json.dumps(TYPES_BY_CONTROL)

    def load_records(self) -> Iterable[Column]:
        columns = Column.objects.filter(table=self.table).select_related("table", "reference_table")
        return columns.prefetch_related("choices").order_by("sys_id")

    @property
    def can_add(self) -> bool:
        return not self.table.is_system or self.table.name in EXTENSIBLE_TABLES

    @property
    def inherited(self) -> Iterable[Column]:
        return Column.objects.filter(table__in=self.table.lineage[1:]).order_by("sys_id")

    def is_valid(self) -> bool:
        if not super().is_valid():
            return False
        names = [form for form in self.forms_to_save if form.cleaned_data["is_display"]]
        for form in names[1:]:
            form.add_error("is_display", "Only one column can name the record.")
        if not names and self.table.is_new and not self.table.number_prefix and not self.table.parent_id:
            self._name_records()
        return len(names) < 2

    def _name_records(self) -> None:
        """Without a name, people would see records by their ID."""
        texts = [form.cleaned_data for form in self.forms_to_save if form.cleaned_data["type"] == "string"]
        if texts and not any(cleaned["name"] == "name" for cleaned in texts):
            texts[0]["is_display"] = True

    def costs(self) -> Iterator[str]:
        for form in self.forms_to_save:
            if form.record is not None and form.has_changed():
                previous = form.record.stored_record()
                yield from change_costs.costs_of_saving(form.column(), previous)
                kept = parse_choices(form.cleaned_data["choices"])
                removed = [choice for value, choice in form.stored_choices.items() if value not in kept]
                for choice in removed if previous.column_type.has_choices else ():
                    yield from change_costs.costs_of_choice_deletion(choice)
            elif form.record is None and not self.table.is_new:
                yield from change_costs.costs_of_saving(form.column(), None)
        for column in self.records_to_delete:
            yield from change_costs.costs_of_deletion(column)
