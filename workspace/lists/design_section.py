"""Shared lists in design files: the saved lists that are shared with roles, identified by table and name."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError

from accounts.models import User
from tableapi.changes.logged_values import table_key, table_of
from tableapi.database import catalogue_loader
from tableapi.design.catalogue_checks import load_catalogue
from tableapi.design_files import record_ids
from tableapi.design_files.kinds import DELETED_ROLE, ROLES, TABLE, Attribute, Item, Key, Kind
from tableapi.query.path_resolver import RuleScope
from tableapi.read.context import Caller
from workspace.models import SavedList

from .saved_lists import fits


@dataclass(frozen=True, eq=False)
class SharedListKind(Kind):
    def records(self) -> Iterable[SavedList]:
        return SavedList.objects.exclude(roles=[]).order_by("sys_id")

    def read(self) -> Iterator[Item]:
        """Omits lists that a file cannot contain: with ids, or with the name of an older one. Anybody can share a list,
        so these must not prevent an export."""
        catalogue = catalogue_loader.load()
        found: set[Key] = set()
        for item in super().read():
            table = table_of(catalogue, item.record.table_key)
            if table is None or item.values["roles"] == [DELETED_ROLE]:
                continue
            item = replace(item, key=(table.name, item.record.name))
            if item.key not in found and not record_ids.has_id_in_query(catalogue, table.name, item.record.query):
                found.add(item.key)
                yield item

    def parent_key(self, record: Any) -> Key:
        return ()

    def new(self, key: Key, caller: Caller) -> SavedList:
        table = load_catalogue().tables.get(key[0])
        if table is None:
            raise ValidationError(f"There is no table “{key[0]}”.")
        user = User.objects.get(pk=caller.user_id)
        if SavedList.objects.filter(user=user, table_key=table_key(table), name=key[1]).exists():
            raise ValidationError({"name": "You already have a list with this name. Rename or share it."})
        return SavedList(user=user, table_key=table_key(table))

    def save(self, record: SavedList, caller: Caller) -> None:
        catalogue = load_catalogue()
        table = table_of(catalogue, record.table_key)
        if not record.roles:
            raise ValidationError({"roles": "Give at least one role. Lists without roles belong to one person."})
        record.full_clean(exclude={"sys_id"})
        if table is None or not fits(RuleScope(catalogue), table, record):
            raise ValidationError({"query": "The query or a column does not fit the table."})
        record.save()


SHARED_LIST = SharedListKind(
    "shared_list",
    "shared_lists",
    SavedList,
    (Attribute("name", is_required=True), Attribute("query"), Attribute("columns", list, ()), ROLES),
    parent=TABLE,
)
