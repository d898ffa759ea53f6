"""The section of the table itself: its label, name and options."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from tableapi.design import change_costs
from tableapi.models import Table
from tableapi.models.tables import MAX_NAME_LENGTH

from .names import name_of_label
from .section import Section, add_errors, save_record


class TableChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, table: Table) -> str:
        return f"{table.label} ({table.name})"


class TableForm(forms.ModelForm):  # type: ignore[type-arg]
    """The record is validated when it is saved, with the catalogue of that moment."""

    name = forms.CharField(
        max_length=MAX_NAME_LENGTH,
        required=False,
        help_text="Used in addresses and by programs. Lowercase letters, digits and underscores. Fixed once saved.",
    )
    parent = TableChoiceField(
        Table.objects.filter(is_system=False).order_by("label"),
        required=False,
        label="Extends",
        empty_label="No table",
        help_text="The columns and rules of that table also apply to this one. Fixed once saved.",
    )

    class Meta:
        model = Table
        fields = ("label", "name", "parent", "number_prefix", "deferred_create")
        labels = {"deferred_create": "Create records in the background"}
        help_texts = {
            "number_prefix": "Uppercase letters, such as TSK. Every new record gets a number with this prefix.",
            "deferred_create": "New records are checked at once and created a moment later.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A refused save leaves the record as if it were stored, so this is noted before.
        self.is_new = self.instance.is_new
        fixed = () if self.is_new else ("name", "parent")
        for name in (*fixed, *(("number_prefix", "deferred_create") if self.instance.is_system else ())):
            self.fields[name].disabled = True

    def _post_clean(self) -> None:
        self.instance = forms.models.construct_instance(self, self.instance)

    def clean_name(self) -> str:
        """Without a name, one is derived from the label, as the script of the page does."""
        return self.cleaned_data["name"] or name_of_label(self.cleaned_data.get("label", ""))


class TableSection(Section):
    title, template = "Table", "workspace/designer/table.html"

    def __init__(self, data: QueryDict | None, table: Table) -> None:
        super().__init__(data, table)
        self.form = TableForm(data, instance=table, prefix="table")

    def is_valid(self) -> bool:
        return self.form.is_valid()

    def costs(self) -> Iterator[str]:
        if "number_prefix" in self.form.changed_data:
            yield from change_costs.costs_of_number_prefix(self.form.instance)

    def save(self) -> None:
        if self.form.is_new or self.form.has_changed():
            try:
                save_record(self.form.instance)
            except ValidationError as error:
                add_errors(self.form, error)
