"""The section of the access rules: the matrix, the rules with conditions, those of other tables, and warnings."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from tableapi.access.permissions import ANY_COLUMN, RECORD_LEVEL
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, SYS_COLUMNS
from tableapi.models import Rule, Table
from tableapi.read.context import ReadContext
from workspace.lists.query_description import describe_query, rule_in_words

from . import rule_warnings
from .rows import LinesField, RowForm, RowSection
from .rule_matrix import OPERATIONS, RuleMatrix
from .section import save_record

FIELDS = ("operation", "column_name", "roles", "condition", "description", "active", "admin_overrides")
ALL_COLUMNS = "all columns (*)"
ANY_COLUMN_HELP = "The name of a column of any table, or * for all columns. Leave empty for the record."


class RuleForm(RowForm):
    operation = forms.ChoiceField(choices=[(name, name.capitalize()) for name in OPERATIONS], initial="read")
    column_name = forms.CharField(required=False, label="Of")
    roles = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, help_text="Without a role, the rule is for everyone."
    )
    condition = LinesField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "data-condition": "", "spellcheck": "false"}),
        help_text="An encoded query, such as assigned_userDYNAMICme (assigned to the user) or active=true. Leave empty "
        "for every record.",
    )
    description = forms.CharField(required=False, strip=False, max_length=255)
    active = forms.BooleanField(required=False, initial=True)
    admin_overrides = forms.BooleanField(required=False, initial=True, label="Administrators bypass this rule")
    # For the page: the condition in words, and warnings about the stored rule.
    words = ""
    warnings: Iterable[str] = ()

    def __init__(self, *args: Any, table: Table | None, record: Rule | None = None, **options: Any) -> None:
        initial = {} if record is None else {name: getattr(record, name) for name in FIELDS}
        super().__init__(*args, table=table, record=record, initial=initial, **options)

    def offer(self, roles: dict[str, str], columns: dict[str, str]) -> None:
        """Set the choices of the selects, without deleted roles."""
        self.fields["roles"].choices = sorted(roles.items(), key=lambda item: item[1])  # type: ignore[attr-defined]
        if "roles" in self.initial:
            self.initial["roles"] = [role for role in self.initial["roles"] if role in roles]
        if self.table is None:
            self.fields["column_name"].help_text = ANY_COLUMN_HELP
            return
        chosen = str(self["column_name"].value() or "")
        choices = {RECORD_LEVEL: "the record", **columns}
        choices.setdefault(chosen, chosen)
        self.fields["column_name"].widget = forms.Select(choices=[*choices.items()], attrs={"data-rule-columns": ""})

    def save_record(self) -> None:
        rule = self.record or Rule(table=self.table)
        for name in FIELDS if self.record is None else set(FIELDS).intersection(self.changed_data):
            setattr(rule, name, self.cleaned_data[name])
        save_record(rule)


class RulesSection(RowSection):
    title, template = "Access rules", "workspace/designer/rules.html"
    script = "servicebase/workspace/designer-rules.js"
    prefix, row_form = "rules", RuleForm
    operations = OPERATIONS

    def __init__(self, data: QueryDict | None, table: Table | None) -> None:
        self.columns = columns_of(table)
        self.matrix = RuleMatrix(data, table, self.columns)
        self.inherited: list[dict[str, Any]] = []
        self.notes: list[str] = []
        super().__init__(data, table)

    def load_records(self) -> Iterable[Rule]:
        return self.matrix.others if self.data is None else self.matrix.rules

    def _form(self, number: str, record: Any = None, data: QueryDict | None = None) -> RuleForm:
        form = super()._form(number, record, data)
        assert isinstance(form, RuleForm)
        form.offer(self.matrix.roles_of_rules, self.columns)
        return form

    def is_valid(self) -> bool:
        return super().is_valid() and not self.matrix.errors

    def save(self) -> None:
        for form in self.forms_to_save:
            try:
                form.cleaned_data["roles"] = [self.matrix.role_id(role) for role in form.cleaned_data["roles"]]
            except ValidationError as error:
                form.add_error("roles", error.messages)
                return
        super().save()
        self.matrix.save()

    def describe(self, context: ReadContext) -> None:
        """Add what the page says about stored rules. Labels of records are in the words of the viewer."""
        catalogue = context.view.catalogue
        table = catalogue.tables.get(self.table.name) if self.table else None
        if self.table and (table is None or self.table.is_new):
            return
        warnings = {rule.pk: list(rule_warnings.warnings_of(catalogue, table, rule)) for rule in self.matrix.rules}
        for form in self.forms:
            if isinstance(form, RuleForm) and form.record is not None:
                form.warnings = warnings.get(form.record.pk, ())
                condition = form.record.condition
                form.words = describe_query(context, table, condition) if table and condition else ""
        self.notes = list(rule_warnings.missing_rules(catalogue, table)) if table else []
        self.notes += [f"{rule}: {text}" for rule in self.matrix.stored.values() for text in warnings.get(rule.pk, ())]
        if table is None:
            return
        self.inherited = [
            {**rule_in_words(context, table, rule), "table": rule.table, "overridden": overridden}
            for rule, overridden in rule_warnings.inherited_rules(catalogue, table)
        ]


def columns_of(table: Table | None) -> dict[str, str]:
    """What a rule can be for besides the record: all columns, or one, those of the parents first."""
    owners = [] if table is None or table.is_new else list(reversed(table.lineage))
    named = {column.name: column.label for owner in owners for column in owner.columns.order_by("sys_id")}
    return {ANY_COLUMN: ALL_COLUMNS, **named, **{name: name for name in (*SYS_COLUMNS, OWN_TABLE_COLUMN)}}
