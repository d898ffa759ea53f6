"""The history page of a record: its own entries, and those of related records such as its roles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import QuerySet, Value
from simple_history.models import ModelChange, ModelDelta
from simple_history.template_utils import HistoricalRecordContextHelper

from system.records.record import Record

MAX_VALUE_LENGTH = 10_000
VERBS = {"+": "added", "~": "changed", "-": "removed"}


@dataclass(frozen=True)
class RelatedRecords:
    """Records that reference another record in `link_column`. `name_column` contains their names. If it is `sys_id`,
    their text is their name."""

    model: type[Record]
    link_column: str
    kind: str
    name_column: str

    def entries_of(self, sys_id: str) -> QuerySet[Any]:
        model: Any = self.model
        entries: QuerySet[Any] = model.history.filter(**{f"{self.link_column}_id": sys_id})
        return entries

    def describe(self, entries: Sequence[Any]) -> None:
        """Add a description such as `Role itil added` to each entry."""
        field: Any = self.model._meta.get_field(self.name_column)
        values = [getattr(entry, field.attname) for entry in entries]
        named_model = self.model if field.primary_key else field.related_model
        names = DisplayNames(named_model).of(values) if named_model else values
        for entry, name in zip(entries, names, strict=True):
            entry.part_description = f"{self.kind} {name} {VERBS[entry.history_type]}"


class DisplayNames:
    """The display names of a model's records, including those of deleted ones."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.names_by_id: dict[str, str] = {}

    def of(self, ids: Sequence[str]) -> list[str]:
        if missing_ids := set(ids) - self.names_by_id.keys():
            names = {record.pk: str(record) for record in self.model._default_manager.filter(pk__in=missing_ids)}
            self.names_by_id |= dict.fromkeys(missing_ids, "") | names | self._deleted_names(missing_ids - names.keys())
        return [self.names_by_id[sys_id] or sys_id for sys_id in ids]

    def _deleted_names(self, ids: set[str]) -> dict[str, str]:
        if not ids:
            return {}
        entries = self.model.history.filter(sys_id__in=ids)
        last_entries = entries.order_by("sys_id", "-history_date", "-history_id").distinct("sys_id")
        # `entry.instance` would need columns that the history does not contain.
        return {
            entry.sys_id: str(
                self.model(**{field.attname: getattr(entry, field.attname) for field in entry.tracked_fields})
            )
            for entry in last_entries
        }


class HistoryEntries:
    """The history entries of a record and its parts, newest first, for a paginator."""

    def __init__(self, own_entries: QuerySet[Any], parts: tuple[RelatedRecords, ...], sys_id: str) -> None:
        self.own_entries, self.model = own_entries, own_entries.model
        self.sources: list[tuple[RelatedRecords | None, QuerySet[Any]]] = [(None, own_entries)]
        self.sources += [(part, part.entries_of(sys_id)) for part in parts]

    def latest(self, *names: str) -> Any:
        return self.own_entries.latest(*names)

    def count(self) -> int:
        return sum(entries.count() for _, entries in self.sources)

    def __getitem__(self, span: slice) -> list[Any]:
        keys = [
            entries.order_by()
            .annotate(source_number=Value(number))
            .values_list("history_date", "source_number", "history_id")
            for number, (_, entries) in enumerate(self.sources)
        ]
        page = list(keys[0].union(*keys[1:], all=True).order_by("-history_date", "-source_number", "-history_id")[span])
        entries_by_key: dict[tuple[int, int], Any] = {}
        for number, (part, entries) in enumerate(self.sources):
            ids = [history_id for _, source_number, history_id in page if source_number == number]
            source_entries = list(entries.filter(history_id__in=ids))
            if part is not None:
                part.describe(source_entries)
            entries_by_key |= {(number, entry.history_id): entry for entry in source_entries}
        return [entries_by_key[number, history_id] for _, number, history_id in page]


class ChangesWithNames(HistoricalRecordContextHelper):  # type: ignore[misc]  # has no types
    """Displays lists of ids as record names."""

    def __init__(self, entry: Any, names: dict[str, DisplayNames], **options: Any) -> None:
        super().__init__(entry.instance_type, entry, **options)
        self.names = names

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        prepared_value = super().prepare_delta_change_value(change, value)
        table = getattr(self.model, "references", {}).get(change.field)
        if table is None or not isinstance(prepared_value, list):
            if isinstance(prepared_value, bool):
                return "yes" if prepared_value else "no"
            return "" if prepared_value is None else prepared_value
        if table not in self.names:
            self.names[table] = DisplayNames(
                next(model for model in apps.get_models() if model._meta.db_table == table)
            )
        return self.names[table].of(prepared_value)


def describe_changes(page: Sequence[Any]) -> None:
    """Add the changes since the previous entry to each entry."""
    names: dict[str, DisplayNames] = {}
    previous_entries: dict[tuple[type, str], Any] = {}
    for entry in reversed(page):
        key = (type(entry), entry.sys_id)
        # The previous entry is usually on the same page. Only a record's oldest entry on the page needs a query.
        previous_entry = previous_entries.get(key) or (entry.prev_record if entry.history_type == "~" else None)
        if previous_entry is not None and entry.history_type == "~":
            entry.changes = list(_changes(previous_entry, entry, ChangesWithNames(entry, names)))
        previous_entries[key] = entry


def values_of(entry: Any) -> list[dict[str, Any]]:
    """The label and value of each column of a version."""
    context = ChangesWithNames(entry, {}, max_displayed_delta_change_chars=MAX_VALUE_LENGTH)
    changes = []
    for field in entry.tracked_fields:
        value = getattr(entry, field.attname)
        if field.is_relation and value is not None:
            (value,) = DisplayNames(field.related_model).of([value])
        if field.name not in entry.instance_type.internal_columns:
            changes.append(ModelChange(field.name, None, value))
    return context.context_for_delta_changes(ModelDelta(changes, [], entry, entry))  # type: ignore[no-any-return]


def _changes(previous_entry: Any, entry: Any, context: ChangesWithNames) -> Iterator[dict[str, Any]]:
    yield from context.context_for_delta_changes(entry.diff_against(previous_entry, foreign_keys_are_objs=True))
    # The library omits columns that are not editable, so an entry about them would be empty.
    internal_columns = entry.instance_type.internal_columns
    names = [
        field.name
        for field in entry.tracked_fields
        if not (field.editable or field.is_relation or field.name in internal_columns)
    ]
    changes = [ModelChange(name, getattr(previous_entry, name), getattr(entry, name)) for name in names]
    delta = ModelDelta([change for change in changes if change.old != change.new], names, previous_entry, entry)
    yield from context.context_for_delta_changes(delta)
