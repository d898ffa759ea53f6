"""Reads what is stored as a design, and writes it as a file."""

from accounts.roles import ADMIN
from system.errors import AccessDenied, Conflict, combine_errors
from tableapi.database import catalogue_loader
from tableapi.models import Table
from tableapi.read.context import Caller

from . import record_ids
from .document import Design, design_text
from .kinds import DELETED_ROLE, KINDS, RULE, TABLE, Item

COMMENTS = (
    "The design of a Servicebase installation. Plan and apply it under /design-files/, with the API, or with",
    "“manage.py design”. “complete” means that --prune also deletes what is not in this file: remove that line",
    "before you remove parts of the file.",
)


def require_admin(caller: Caller) -> None:
    if ADMIN not in caller.role_names:
        raise AccessDenied("Only administrators can use design files.")


def read_design() -> Design:
    """Everything that a file can contain. Product tables are included only as parents of the rest."""
    design = Design(is_complete=True)
    for kind in KINDS:
        for item in kind.read():
            design.add(item)
    return design


def export_design(caller: Caller) -> str:
    require_admin(caller)
    design, catalogue = read_design(), catalogue_loader.reload_if_changed()
    problems = []
    for kind in KINDS:
        for item in list(design.of(kind).values()):
            for name in record_ids.id_attributes(catalogue, item):
                problems.append(Conflict(f"{item}: “{name}” {record_ids.PROBLEM}.", code="names_record", field=name))
            if kind is RULE and item.values["roles"] == [DELETED_ROLE]:
                message = f"{item}: all roles of this rule were deleted. Select other roles, or delete the rule."
                problems.append(Conflict(message, code="deleted_roles", field="roles"))
            if len(item.key) > 1 and item.key[0] and (item.key[0],) not in design.of(TABLE):
                design.add(Item(TABLE, (item.key[0],), {"name": item.key[0]}))
    if problems:
        raise combine_errors(problems)
    return design_text(design, COMMENTS)


def product_table_names() -> set[str]:
    return set(Table.objects.filter(is_system=True).values_list("name", flat=True))
