"""The kinds of a design file, one row each: its section, its attributes, and how its records are read and saved."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from django.core.exceptions import ValidationError

from accounts.models import Role
from system.records import savers
from tableapi.catalogue.definitions import NUMBER_COLUMN
from tableapi.catalogue.value_readers import invalid_choice_message
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.read.context import Caller

Key = tuple[str, ...]
# A rule whose roles were all deleted applies to nobody; a rule without roles applies to everybody.
DELETED_ROLE = "(deleted role)"


@dataclass(frozen=True)
class Attribute:
    name: str
    type: type = str
    default: Any = ""
    is_required: bool = False
    # The attribute of the record, if it has another name.
    field: str = ""
    # The kind of the record, or records, that the value names.
    target: str = ""
    # Whether the product derives the value if the file omits it.
    is_derived: bool = False

    @property
    def record_field(self) -> str:
        return self.field or self.name


@dataclass(frozen=True)
class Item:
    """One table, column and so on: in a file, with its line, or stored, with its record."""

    kind: "Kind"
    key: Key
    values: Mapping[str, Any]
    line: int = 0
    record: Any = None

    @property
    def parent_key(self) -> Key:
        return self.key[: self.kind.parent_depth]

    def __str__(self) -> str:
        return self.kind.title(self)


@dataclass(frozen=True, eq=False)
class Kind:
    name: str
    section: str
    model: Any
    attributes: tuple[Attribute, ...]
    # The attributes that identify an item within its parent. Empty for rules; see `plan.match_rules`.
    identity: Key = ("name",)
    parent: "Kind | None" = None
    parent_field: str = ""
    is_ordered: bool = False
    related: Key = ()
    filters: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    @property
    def parent_depth(self) -> int:
        return 0 if self.parent is None else self.parent.parent_depth + 1

    def title(self, item: Item) -> str:
        return f"{self.name.replace('_', ' ')} {'.'.join(item.key)}"

    # What is stored

    def records(self) -> Iterable[Any]:
        records = self.model.objects.filter(**self.filters)
        return records.select_related(*self.related) if self.related else records  # type: ignore[no-any-return]

    def read(self) -> Iterator[Item]:
        role_names = dict(Role.objects.values_list("sys_id", "name"))
        for record in self.records():
            values = {row.name: stored_value(row, record, role_names) for row in self.attributes}
            identity = [values[name] for name in self.identity] or [record.pk]
            yield Item(self, (*self.parent_key(record), *identity), values, record=record)

    def parent_key(self, record: Any) -> Key:
        if self.parent is None:
            return ()
        parent = attrgetter(self.parent_field)(record)
        return ("",) if parent is None else (*self.parent.parent_key(parent), parent.name)

    # Changes

    def new(self, key: Key, caller: Caller) -> Any:
        record = self.model()
        if self.parent is not None and "." not in self.parent_field and key[0]:
            parents = self.parent.model.objects.filter(name=key[self.parent_depth - 1])
            setattr(
                record, self.parent_field, parents.get(**({"table__name": key[0]} if self.parent_depth > 1 else {}))
            )
        return record

    def assign(self, item: Item, record: Any) -> None:
        """Set what the item gives. Raises ValidationError for a name that does not exist."""
        for name, value in item.values.items():
            attribute = self.by_name[name]
            choices = dict(self.model._meta.get_field(attribute.record_field).flatchoices)
            if attribute.target:
                value = _named_records(attribute, item, value)
            elif choices and value not in choices:
                raise ValidationError({attribute.record_field: invalid_choice_message(list(choices))})
            setattr(record, attribute.record_field, value)

    def save(self, record: Any, caller: Caller) -> None:
        saver = savers.saver_of(self.model)
        if not isinstance(record, CatalogueRecord):  # those are validated when they are saved
            saver.clean(record)
        saver.save(record)


def _named_records(attribute: Attribute, item: Item, value: Any) -> Any:
    names = value if attribute.type is list else [value] if value else []
    owner = {"table__name": item.key[0]} if attribute.target == "column" else {}
    records: dict[str, Any] = {
        row.name: row for row in TARGETS[attribute.target].objects.filter(name__in=names, **owner)
    }
    if missing := [name for name in names if name not in records]:
        raise ValidationError({attribute.record_field: f"There is no {attribute.target} “{missing[0]}”."})
    if attribute.type is list:
        return [records[name].pk for name in names]
    return records[value] if value else None


def stored_value(attribute: Attribute, record: Any, role_names: Mapping[str, str]) -> Any:
    value = getattr(record, attribute.record_field)
    if attribute.target == "role":
        names = sorted({role_names[sys_id] for sys_id in value if sys_id in role_names})
        return names if names or not value else [DELETED_ROLE]
    if attribute.target:
        return value.name if value is not None else ""
    return list(value) if attribute.type is list else value


@dataclass(frozen=True, eq=False)
class ColumnKind(Kind):
    def new(self, key: Key, caller: Caller) -> Any:
        # Saving a table with a number prefix has created this column.
        number = Column.objects.filter(table__name=key[0], name=key[1]) if key[1] == NUMBER_COLUMN else ()
        return next(iter(number), None) or super().new(key, caller)


@dataclass(frozen=True, eq=False)
class RuleKind(Kind):
    def title(self, item: Item) -> str:
        subject = ".".join(filter(None, (item.key[0] or "any table", item.values["column"])))
        description = item.values["description"]
        return f"rule {item.values['operation']} {subject}{f' “{description}”' if description else ''}"


LABEL = Attribute("label", is_required=True)
ROLES = Attribute("roles", list, is_required=True, target="role")
ROLE = Kind(
    "role", "roles", Role,
    (
        Attribute("name", is_required=True), Attribute("description"), Attribute("contains", list, (), target="role"),
        Attribute("grantable_by_sign_in", bool, True),
    ),
)  # fmt: skip
TABLE = Kind(
    "table", "tables", Table,
    (
        Attribute("name", is_required=True), LABEL, Attribute("parent", target="table"), Attribute("number_prefix"),
        Attribute("deferred_create", bool, False),
    ),
    related=("parent",), filters={"is_system": False},
)  # fmt: skip
COLUMN = ColumnKind(
    "column", "columns", Column,
    (
        Attribute("name", is_required=True), LABEL, Attribute("type", is_required=True),
        Attribute("reference_table", target="table"), Attribute("mandatory", bool, False),
        Attribute("unique", bool, False, field="is_unique"), Attribute("read_only", bool, False),
        Attribute("default_value"), Attribute("max_length", int, None, is_derived=True),
        Attribute("display", bool, False, field="is_display"), Attribute("indexed", bool, False, field="is_indexed"),
        Attribute("converted_from_text", bool, False, is_derived=True),
    ),
    parent=TABLE, parent_field="table", related=("table", "reference_table"), filters={"physical_name": ""},
)  # fmt: skip
CHOICE = Kind(
    "choice", "choices", Choice, (Attribute("value", is_required=True), LABEL), ("value",), COLUMN, "column",
    is_ordered=True, related=("column__table",), filters={"column__physical_name": ""},
)  # fmt: skip
VIEW = Kind(
    "view", "views", View, (Attribute("name", is_required=True),), ("name",), TABLE, "table", related=("table",)
)
VIEW_COLUMN = Kind(
    "view_column", "columns", ViewColumn, (Attribute("path", is_required=True), Attribute("section")), ("path",), VIEW,
    "view", is_ordered=True, related=("view__table",),
)  # fmt: skip
RULE = RuleKind(
    "rule", "rules", Rule,
    (
        Attribute("operation", is_required=True), Attribute("column", field="column_name"), ROLES,
        Attribute("condition"), Attribute("admin_overrides", bool, True), Attribute("active", bool, True),
        Attribute("description"),
    ),
    (), TABLE, "table", related=("table",),
)  # fmt: skip
SET_RULE = Kind(
    "set_on_change_rule", "set_on_change", SetRule,
    (
        Attribute("column", is_required=True, target="column"),
        Attribute("watched", is_required=True, target="column"), Attribute("value"),
        Attribute("set_to", is_required=True), Attribute("clears", bool, False),
    ),
    ("column",), TABLE, "column.table", related=("column__table", "watched"),
)  # fmt: skip
# In the order in which they are saved; deleted in the reverse order.
KINDS: list[Kind] = [ROLE, TABLE, COLUMN, CHOICE, VIEW, VIEW_COLUMN, RULE, SET_RULE]
TARGETS: dict[str, Any] = {"role": Role, "table": Table, "column": Column}


def register(kind: Kind) -> None:
    """Add a kind of another app. Its items belong to tables, and are saved last."""
    KINDS.append(kind)


def sections_of(parent: Kind | None) -> dict[str, Kind]:
    """The kinds by section. At the top of a file, `rules` are those for any table."""
    sections = {kind.section: kind for kind in KINDS if kind.parent is parent}
    return sections | ({RULE.section: RULE} if parent is None else {})
