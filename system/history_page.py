"""In charge of the page of a record's history: its own entries, and those of what belongs to it, such as its roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import QuerySet, Value
from simple_history.models import ModelChange, ModelDelta
from simple_history.template_utils import HistoricalRecordContextHelper

from system.record import Record

VERBS = {"+": "added", "~": "changed", "-": "removed"}


@dataclass(frozen=True)
class Part:
    """Records that belong to another one, by their column `link`: people know each by what stands in `named`."""

    model: type[Record]
    link: str
    kind: str
    named: str

    def entries_of(self, sys_id: str) -> QuerySet[Any]:
        model: Any = self.model
        found: QuerySet[Any] = model.history.filter(**{f"{self.link}_id": sys_id})
        return found

    def said(self, entry: Any) -> str:
        """Such as: Role itil added."""
        field: Any = self.model._meta.get_field(self.named)
        value = getattr(entry, field.attname)
        return (
            f"{self.kind} {name_then(field.related_model, value) if field.is_relation else value} "
            + (VERBS[entry.history_type])
        )


def name_then(model: Any, sys_id: str) -> str:
    """What people call a record; of one that is gone, what they called it."""
    found = model._default_manager.filter(pk=sys_id).first()
    last = None if found else model.history.filter(sys_id=sys_id).order_by("-history_date").first()
    return str(found or (last.instance if last else sys_id))


class Entries:
    """The entries of a record and of its parts together, newest first, as a paginator asks for them."""

    def __init__(self, own: QuerySet[Any], parts: tuple[Part, ...], sys_id: str) -> None:
        self.own, self.model = own, own.model
        self.sources: list[tuple[Part | None, QuerySet[Any]]] = [(None, own)]
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
        found = {}
        for place, (part, entries) in enumerate(self.sources):
            of_it = [history_id for _, where, history_id in asked if where == place]
            for entry in entries.filter(history_id__in=of_it):
                entry.said = part.said(entry) if part else ""
                found[place, entry.history_id] = entry
        return [found[place, history_id] for _, place, history_id in asked]


class InWords(HistoricalRecordContextHelper):  # type: ignore[misc]  # has no types
    """Lists of ids as what people call the records."""

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        prepared = super().prepare_delta_change_value(change, value)
        table = getattr(self.model, "references", {}).get(change.field)
        if table is None or not isinstance(prepared, list):
            return prepared
        model = next(each for each in apps.get_models() if each._meta.db_table == table)
        return [name_then(model, sys_id) for sys_id in prepared]


def tell_changes(entry: Any) -> None:
    """Put what an entry changed beside it, where something stood before."""
    before = entry.prev_record if entry.history_type == "~" else None
    if before is None:
        return
    delta = entry.diff_against(before, foreign_keys_are_objs=True)
    # The library leaves out what no form changes, so that an entry about it would be empty.
    unseen = [each.name for each in entry.tracked_fields if not (each.editable or each.is_relation)]
    changes = [ModelChange(name, getattr(before, name), getattr(entry, name)) for name in unseen]
    changes = [each for each in changes if each.old != each.new]
    told = InWords(entry.instance_type, entry)
    both = (delta, ModelDelta(changes, unseen, before, entry))
    entry.changes = [change for each in both for change in told.context_for_delta_changes(each)]
