"""The history page of a record: its own entries, and those of related records such as its roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import QuerySet, Value
from simple_history.models import ModelChange, ModelDelta
from simple_history.template_utils import HistoricalRecordContextHelper

from system.records.record import Record

VERBS = {"+": "added", "~": "changed", "-": "removed"}


@dataclass(frozen=True)
class RelatedRecords:
    """Records that belong to another one, by their column `link`: people know each by what stands in `named`."""

    model: type[Record]
    link: str
    kind: str
    named: str

    def entries_of(self, sys_id: str) -> QuerySet[Any]:
        model: Any = self.model
        found: QuerySet[Any] = model.history.filter(**{f"{self.link}_id": sys_id})
        return found

    def tell(self, entries: Sequence[Any]) -> None:
        """Put beside each what it says, such as: Role itil added."""
        field: Any = self.model._meta.get_field(self.named)
        values = [getattr(entry, field.attname) for entry in entries]
        names = Names(field.related_model).of(values) if field.is_relation else values
        for entry, name in zip(entries, names, strict=True):
            entry.said = f"{self.kind} {name} {VERBS[entry.history_type]}"


class Names:
    """What people call the records of a model; of those that are gone, what they called them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.known: dict[str, str] = {}

    def of(self, ids: Sequence[str]) -> list[str]:
        if wanted := set(ids) - self.known.keys():
            there = {each.pk: str(each) for each in self.model._default_manager.filter(pk__in=wanted)}
            self.known |= dict.fromkeys(wanted, "") | there | self._gone(wanted - there.keys())
        return [self.known[sys_id] or sys_id for sys_id in ids]

    def _gone(self, ids: set[str]) -> dict[str, str]:
        if not ids:
            return {}
        entries = self.model.history.filter(sys_id__in=ids)
        last = entries.order_by("sys_id", "-history_date", "-history_id").distinct("sys_id")
        # Not `instance`, which asks for what the history does not keep.
        return {
            each.sys_id: str(self.model(**{kept.attname: getattr(each, kept.attname) for kept in each.tracked_fields}))
            for each in last
        }


class Entries:
    """The entries of a record and of its parts together, newest first, as a paginator asks for them."""

    def __init__(self, own: QuerySet[Any], parts: tuple[RelatedRecords, ...], sys_id: str) -> None:
        self.own, self.model = own, own.model
        self.sources: list[tuple[RelatedRecords | None, QuerySet[Any]]] = [(None, own)]
        self.sources += [(part, part.entries_of(sys_id)) for part in parts]

    def latest(self, *names: str) -> Any:
        return self.own.latest(*names)

    def count(self) -> int:
        return sum(entries.count() for _, entries in self.sources)

    def __getitem__(self, span: slice) -> list[Any]:
        keys = [
            entries.order_by().annotate(place=Value(place)).values_list("history_date", "place", "history_id")
            for place, (_, entries) in enumerate(self.sources)
        ]
        asked = list(keys[0].union(*keys[1:], all=True).order_by("-history_date", "-place", "-history_id")[span])
        found: dict[tuple[int, int], Any] = {}
        for place, (part, entries) in enumerate(self.sources):
            of_it = [history_id for _, where, history_id in asked if where == place]
            here = list(entries.filter(history_id__in=of_it))
            if part is not None:
                part.tell(here)
            found |= {(place, entry.history_id): entry for entry in here}
        return [found[place, history_id] for _, place, history_id in asked]


class InWords(HistoricalRecordContextHelper):  # type: ignore[misc]  # has no types
    """Lists of ids as what people call the records."""

    def __init__(self, entry: Any, names: dict[str, Names]) -> None:
        super().__init__(entry.instance_type, entry)
        self.names = names

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        prepared = super().prepare_delta_change_value(change, value)
        table = getattr(self.model, "references", {}).get(change.field)
        if table is None or not isinstance(prepared, list):
            return prepared
        if table not in self.names:
            self.names[table] = Names(next(each for each in apps.get_models() if each._meta.db_table == table))
        return self.names[table].of(prepared)


def describe_changes(page: Sequence[Any]) -> None:
    """Put what each entry changed beside it, where something stood before."""
    names: dict[str, Names] = {}
    before: dict[tuple[type, str], Any] = {}
    for entry in reversed(page):
        key = (type(entry), entry.sys_id)
        # Of all but the oldest on the page it is on the page too.
        older = before.get(key) or (entry.prev_record if entry.history_type == "~" else None)
        if older is not None and entry.history_type == "~":
            entry.changes = list(_changes(older, entry, InWords(entry, names)))
        before[key] = entry


def _changes(older: Any, entry: Any, told: InWords) -> Iterator[dict[str, Any]]:
    yield from told.context_for_delta_changes(entry.diff_against(older, foreign_keys_are_objs=True))
    # The library leaves out what no form changes, so that an entry about it would be empty.
    untold = entry.instance_type.untold_columns
    unseen = [
        each.name for each in entry.tracked_fields if not (each.editable or each.is_relation or each.name in untold)
    ]
    changes = [ModelChange(name, getattr(older, name), getattr(entry, name)) for name in unseen]
    delta = ModelDelta([each for each in changes if each.old != each.new], unseen, older, entry)
    yield from told.context_for_delta_changes(delta)
