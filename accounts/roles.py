"""Answers which roles somebody holds, contained ones included."""

from collections.abc import Collection
from typing import Any

from django.apps import apps
from django.db import connection

ADMIN = "admin"
SSO_ADMIN = "sso_admin"
COLLECTION_ADMIN = "collection_admin"
ITIL = "itil"
MONITORING = "monitoring"

# Shipped roles: description, and whether a sign-in through a provider may grant it.
SHIPPED = {
    ADMIN: ("Everything.", False),
    SSO_ADMIN: ("Single sign-on connections and their certificates.", False),
    COLLECTION_ADMIN: ("Document collections: making, filling and deleting them.", False),
    ITIL: ("Works on service records.", True),
    MONITORING: ("Reads /metrics.", False),
}

# The role beside admin that sees and changes an area's pages in the admin.
AREA_ROLES = {"sso": SSO_ADMIN, "collections_app": COLLECTION_ADMIN}

# UNION leaves out what was found before, so a cycle of roles ends too.
CLOSURE = """
    WITH RECURSIVE held AS (
        SELECT unnest(%s::varchar[]) COLLATE "C" AS sys_id
        UNION
        SELECT unnest(role.contains) FROM sys_role role JOIN held ON role.sys_id = held.sys_id
    )
    SELECT role.name FROM sys_role role JOIN held ON role.sys_id = held.sys_id
"""


# The other way: from a role up to all that contain it.
HOLDERS = """
    WITH RECURSIVE holding AS (
        SELECT %s::varchar COLLATE "C" AS sys_id
        UNION
        SELECT role.sys_id FROM sys_role role JOIN holding ON holding.sys_id = ANY (role.contains)
    )
    SELECT sys_id FROM holding
"""


def closure(role_ids: Collection[str]) -> frozenset[str]:
    """Names of these roles and of all that they contain."""
    if not role_ids:
        return frozenset()
    with connection.cursor() as cursor:
        cursor.execute(CLOSURE, [list(role_ids)])
        return frozenset(name for (name,) in cursor.fetchall())


def contained_ids(role_id: str) -> frozenset[str]:
    """Ids of this role and of all that it contains, directly or through others."""
    query = CLOSURE.replace("role.name", "role.sys_id")
    with connection.cursor() as cursor:
        cursor.execute(query, [[role_id]])
        return frozenset(found for (found,) in cursor.fetchall())


def ids_that_give(role_id: str) -> frozenset[str]:
    """Ids of the roles whose holders have this one: itself and all that contain it, directly or through others."""
    with connection.cursor() as cursor:
        cursor.execute(HOLDERS, [role_id])
        return frozenset(found for (found,) in cursor.fetchall())


def make_shipped() -> None:
    """The roles that the product asks for by name; what an administrator changed of them stays."""
    role: Any = apps.get_model("accounts", "Role")
    known = set(role.objects.values_list("name", flat=True))
    for name, (description, grantable) in SHIPPED.items():
        if name not in known:
            role(name=name, description=description, grantable_by_sign_in=grantable).save()
