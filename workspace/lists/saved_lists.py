"""Saved lists: which ones a person can use, and who may share, change or delete them."""

from dataclasses import dataclass

from accounts import roles
from accounts.models import Role, User
from system.encoded_query import QueryError
from system.errors import ServiceError
from tableapi.catalogue.definitions import Table
from tableapi.changes.logged_values import table_key, table_of
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.query.path_resolver import ReadScope
from tableapi.read.context import ReadContext
from workspace.models import SavedList

from .list_state import ListState

MAX_OFFERED_LISTS = 200
# Lists of the user, and those that are shared with one of their roles by somebody who still has that role.
OFFERED_LISTS_SQL = """
    WITH RECURSIVE owner_role AS (
        SELECT grant_.user_id, grant_.role_id::varchar AS sys_id FROM sys_user_role grant_
        WHERE grant_.user_id IN (SELECT user_id FROM workspace_saved_list WHERE roles <> '{}')
        UNION
        SELECT owner_role.user_id, unnest(role.contains)
        FROM sys_role role JOIN owner_role ON role.sys_id = owner_role.sys_id
    ), shared_list AS (
        SELECT list.sys_id FROM workspace_saved_list list
        JOIN sys_role role ON role.sys_id = ANY (list.roles)
        WHERE (%(is_admin)s OR role.name = ANY (%(role_names)s)) AND EXISTS (
            SELECT FROM owner_role JOIN sys_role owned ON owned.sys_id = owner_role.sys_id
            WHERE owner_role.user_id = list.user_id AND (owned.sys_id = role.sys_id OR owned.name = %(admin)s)
        )
    )
    SELECT * FROM workspace_saved_list list
    WHERE (list.user_id = %(user)s OR list.sys_id IN (SELECT sys_id FROM shared_list))
      AND (%(table_key)s = '' OR list.table_key = %(table_key)s)
    ORDER BY list.user_id <> %(user)s, lower(list.name), list.sys_id LIMIT %(limit)s
"""


@dataclass(frozen=True)
class OfferedList:
    """A saved list that the caller can run. `is_own` tells whether it is theirs."""

    saved: SavedList
    table: Table
    is_own: bool

    @property
    def url(self) -> str:
        return state_of(self.table, self.saved).url


def state_of(table: Table, saved: SavedList) -> ListState:
    values = {"sysparm_query": saved.query, "columns": ",".join(saved.columns), "saved": saved.pk}
    return ListState(table.name).first_page(**values)


def saved_lists_for(context: ReadContext, table: Table | None = None) -> list[OfferedList]:
    """The lists that the caller can use, of one table or of all: their own first. Runs one statement."""
    caller = context.caller
    values = {
        "user": caller.user_id,
        "role_names": sorted(caller.role_names),
        "is_admin": roles.ADMIN in caller.role_names,
        "admin": roles.ADMIN,
        "table_key": table_key(table) if table is not None else "",
        "limit": MAX_OFFERED_LISTS,
    }
    saved_lists = SavedList.objects.raw(OFFERED_LISTS_SQL, values)
    tables = [(saved, table_of(context.view.catalogue, saved.table_key)) for saved in saved_lists]
    return [
        OfferedList(saved, table, saved.user_id == caller.user_id)
        for saved, table in tables
        if table is not None and is_valid(context, table, saved)
    ]


def is_valid(context: ReadContext, table: Table, saved: SavedList) -> bool:
    """Whether the caller can see the table and every column of the query and the list. Cached like other plans."""
    view, key = context.view, ("saved list", table.name, saved.query, tuple(saved.columns))
    is_visible = view.table(table.name) is not None and view.can_read(table)
    return is_visible and view.cached(key, lambda: fits(view, table, saved))


def fits(scope: ReadScope, table: Table, saved: SavedList) -> bool:
    """Whether every column of the query and the list is visible in this scope."""
    try:
        query = parse_query_text(saved.query).shape.query
        return not read_plan.plan_read(scope, table, query=query, fields=tuple(saved.columns)).ignored
    except (ServiceError, QueryError):
        return False


def shareable_roles(user: User) -> dict[str, str]:
    """The roles that the user can share a list with, id → name: their own, or all for administrators."""
    found = Role.objects.all() if user.has_role(roles.ADMIN) else Role.objects.filter(name__in=user.role_names)
    return dict(found.values_list("sys_id", "name"))
