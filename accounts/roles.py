"""The names of shipped roles, and the resolution of roles that contain others."""

from collections.abc import Collection
from typing import Any

from django.apps import apps

from system.plain_sql import fetch_rows

ADMIN = "admin"
SSO_ADMIN = "sso_admin"
COLLECTION_ADMIN = "collection_admin"
ITIL = "itil"
MONITORING = "monitoring"

# Shipped roles: description, and whether a sign-in through a provider may grant it.
SHIPPED_ROLES = {
    ADMIN: ("Has full access.", False),
    SSO_ADMIN: ("Manages single sign-on connections and certificates.", False),
    COLLECTION_ADMIN: ("Creates, fills and deletes document collections.", False),
    ITIL: ("Works on service records.", True),
    MONITORING: ("Reads /metrics.", False),
}

# The role, besides admin, that can view and change an app's admin pages.
AREA_ROLES = {"sso": SSO_ADMIN, "collections_app": COLLECTION_ADMIN}

# UNION drops duplicates, so that the recursion ends even if roles form a cycle.
CONTAINED_NAMES_SQL = """
    WITH RECURSIVE contained_role AS (
        {start}
        UNION
        SELECT unnest(role.contains) FROM sys_role role JOIN contained_role ON role.sys_id = contained_role.sys_id
    )
    SELECT role.name FROM sys_role role JOIN contained_role ON role.sys_id = contained_role.sys_id
"""


# The other direction: from a role to all roles that contain it.
CONTAINING_ROLES_SQL = """
    WITH RECURSIVE containing_role AS (
        SELECT %s::varchar COLLATE "C" AS sys_id
        UNION
        SELECT role.sys_id FROM sys_role role JOIN containing_role ON containing_role.sys_id = ANY (role.contains)
    )
    SELECT sys_id FROM containing_role
"""


EFFECTIVE_NAMES_SQL = CONTAINED_NAMES_SQL.format(start='SELECT unnest(%s::varchar[]) COLLATE "C" AS sys_id')
USER_NAMES_SQL = CONTAINED_NAMES_SQL.format(
    start='SELECT role_id::varchar COLLATE "C" AS sys_id FROM sys_user_role WHERE user_id = %s'
)


def effective_names(role_ids: Collection[str]) -> frozenset[str]:
    """Names of these roles and of all roles that they contain."""
    return _fetch_values(EFFECTIVE_NAMES_SQL, list(role_ids)) if role_ids else frozenset()


def names_of_user(user_id: str) -> frozenset[str]:
    """Names of the roles of a user and of all roles that they contain."""
    return _fetch_values(USER_NAMES_SQL, user_id)


def containing_ids(role_id: str) -> frozenset[str]:
    """Ids of this role and of all roles that contain it, directly or indirectly."""
    return _fetch_values(CONTAINING_ROLES_SQL, role_id)


def _fetch_values(sql: str, parameter: str | list[str]) -> frozenset[str]:
    return frozenset(value for (value,) in fetch_rows(sql, [parameter]))


def create_shipped_roles(**_: Any) -> None:
    """Creates the shipped roles that are missing; keeps the changes of administrators."""
    role: Any = apps.get_model("accounts", "Role")
    existing_names = set(role.objects.values_list("name", flat=True))
    for name, (description, grantable) in SHIPPED_ROLES.items():
        if name not in existing_names:
            role(name=name, description=description, grantable_by_sign_in=grantable).save()
