"""A section that edits several records of a table in rows: columns, views, set-on-change rules."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from tableapi.models import Table

from .section import Section, add_errors

GONE_MESSAGE = "Another administrator deleted this in the meantime. Remove the row, or enter it as a new one."
# Placeholder for the number of a row in the template from which a script builds new rows.
ROW_NUMBER = "__row__"


class LinesField(forms.CharField):
    """Text of several lines, which browsers send with other line breaks."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class RowForm(forms.Form):
    """One row. `record` is None in a row for a new record."""

    delete = forms.BooleanField(required=False, label="Delete")
    is_gone = False

    def __init__(self, *args: Any, table: Table | None, record: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.table: Any = table
        self.record = record

    def save(self) -> None:
        """Save or delete the record. Errors are shown at their fields."""
        try:
            if self.record is not None and self.cleaned_data.get("delete"):
                self.record.delete()
            else:
                self.save_record()
        except ValidationError as error:
            add_errors(self, error)

    def save_record(self) -> None:
        raise NotImplementedError

    @property
    def number(self) -> str:
        return str(self.prefix).partition("-")[2]

    @property
    def is_empty(self) -> bool:
        return self.record is None and not self.has_changed()

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and self.is_gone and not self.cleaned_data.get("delete"):
            self.add_error(None, GONE_MESSAGE)


class RowSection(Section):
    """The rows in the order in which they were sent. Each has a control `{prefix}-row` with its number."""

    prefix = ""
    row_form: type[RowForm]

    def __init__(self, data: QueryDict | None, table: Table | None) -> None:
        super().__init__(data, table)
        records = {} if table and table.is_new else {record.pk: record for record in self.load_records()}
        if data is None:
            self.forms = [self._form(str(number), record) for number, record in enumerate(records.values())]
        else:
            self.forms = [self._sent_form(data, number, records) for number in data.getlist(f"{self.prefix}-row")]
        self.empty_form = self._form(ROW_NUMBER)

    def load_records(self) -> Iterable[Any]:
        raise NotImplementedError

    def _form(self, number: str, record: Any = None, data: QueryDict | None = None) -> RowForm:
        return self.row_form(data, prefix=f"{self.prefix}-{number}", table=self.table, record=record)

    def _sent_form(self, data: QueryDict, number: str, records: dict[str, Any]) -> RowForm:
        sys_id = data.get(f"{self.prefix}-{number}-sys_id", "")
        form = self._form(number, records.get(sys_id), data)
        form.is_gone = bool(sys_id) and sys_id not in records
        return form

    def add_row(self) -> None:
        self.forms.append(self._form(f"new{len(self.forms)}"))

    @property
    def forms_to_save(self) -> list[Any]:
        return [form for form in self.forms if not form.is_empty and not form.cleaned_data.get("delete")]

    @property
    def records_to_delete(self) -> list[Any]:
        return [form.record for form in self.forms if form.record is not None and form.cleaned_data.get("delete")]

    def save(self) -> None:
        """Delete what was marked, then save what was changed and is not deleted with its column on the same page."""
        for form in self.forms:
            if form.record is not None and form.cleaned_data.get("delete"):
                form.save()
        for form in self.forms_to_save:
            if form.has_changed() and (form.record is None or form.record.stored_record()):
                form.save()

    def is_valid(self) -> bool:
        results = [form.is_valid() for form in self.forms]
        return all(valid or form.is_empty for valid, form in zip(results, self.forms, strict=True))
