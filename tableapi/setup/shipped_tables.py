"""Creates the shipped tables and rules once. After that, administrators may change or delete them."""

from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError

from accounts import roles
from accounts.models import Role
from tableapi.catalogue.column_types import MAX_SEARCHED_LENGTH
from tableapi.ddl import schema_editor
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, SetRule, State, Table

# Each level is created only once: "what an administrator deletes stays deleted".
SHIPPED_LEVEL = 6
# The indexes of larger shipped tables are not changed, because queries may depend on them.
MAX_RECORDS_TO_CHANGE = 10_000

TASK_STATES = {"1": "New", "2": "In progress", "3": "On hold", "4": "Resolved", "5": "Closed"}
TASK_PRIORITIES = {"1": "Critical", "2": "High", "3": "Moderate", "4": "Low"}
TASK_DEGREES = {"1": "High", "2": "Medium", "3": "Low"}
APPROVAL_STATES = {
    "not_requested": "Not requested",
    "requested": "Requested",
    "approved": "Approved",
    "rejected": "Rejected",
}

# For each column: its attributes, the referenced table (`to`) and the choices. `state` changes often and has no index,
# because an update of an indexed column writes to all indexes of the table.
TASK_COLUMNS: dict[str, dict[str, Any]] = {
    "state": {"choices": TASK_STATES, "default_value": "1"},
    "priority": {"choices": TASK_PRIORITIES, "default_value": "4", "is_indexed": True},
    "urgency": {"choices": TASK_DEGREES, "default_value": "3"},
    "impact": {"choices": TASK_DEGREES, "default_value": "3"},
    "assigned_user": {"to": "user"},
    "assignment_group": {"to": "sys_group"},
    "wf_executing_activity": {},
    "closed_by": {"to": "user"},
    "followers_list": {"type": "list", "to": "user"},
    "parent_id": {"to": "task", "label": "Parent"},
    "opened_by": {"to": "user", "default_value": "javascript:gs.getUserID()"},
    "caller": {"to": "user"},
    "contact": {"to": "user"},
    "service": {"to": "service"},
    "screenshot": {},
    "short_description": {"max_length": 255},
    "work_notes": {"type": "text"},
    "active": {"type": "boolean", "default_value": "true", "is_indexed": True},
    "closed_at": {"type": "datetime"},
    "sla_due": {"type": "datetime", "label": "SLA due"},
    "description": {"type": "text", "is_indexed": True, "max_length": MAX_SEARCHED_LENGTH},
    "subject": {"max_length": 255, "is_indexed": True},
    "additional_comments": {"type": "text"},
    "comments": {"type": "text"},
    "opened_at": {"type": "datetime", "is_indexed": True, "default_value": "javascript:gs.now()"},
    "due_date": {"type": "datetime"},
    "attention_required": {"type": "boolean", "default_value": "false"},
    "company": {"to": "company"},
    "approval_state": {"choices": APPROVAL_STATES, "default_value": "not_requested"},
    "display_name": {},
    "state_changed_at": {"type": "datetime"},
}
# The `state` that sets a column (empty for any), the value or function to set, and whether the next state clears it.
TASK_SET_RULES = {
    "state_changed_at": ("", "javascript:gs.now()", False),
    "closed_at": ("5", "javascript:gs.now()", True),
    "closed_by": ("5", "javascript:gs.getUserID()", True),
}
NAME_COLUMN: dict[str, dict[str, Any]] = {"name": {"mandatory": True, "is_display": True, "max_length": 255}}

SHIPPED_TABLES: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "service": ({"label": "Service"}, NAME_COLUMN),
    "sys_schedule": ({"label": "Schedule", "deferred_create": True}, NAME_COLUMN),
    "sys_indication": ({"label": "Indication", "deferred_create": True}, NAME_COLUMN),
    "task": ({"label": "Task", "number_prefix": "TSK"}, TASK_COLUMNS),
}

# "any signed-in user reads login, first_name, last_name, active of user and the name of sys_group, company, service;
# nothing else"
READABLE_COLUMNS = {
    "user": ("sys_id", "login", "first_name", "last_name", "active"),
    "sys_group": ("sys_id", "name"),
    "company": ("sys_id", "name"),
    "service": ("sys_id", "name"),
}
# Tables that a role manages, with the operations that it may perform.
MANAGED_TABLES = {
    "oidc_setting": (roles.SSO_ADMIN, tuple(Rule.Operation)),
    "idp_certificate": (roles.SSO_ADMIN, (Rule.Operation.READ,)),
}


def create_shipped_tables() -> None:
    """Create the levels that this database does not have yet."""
    with schema_editor.design_lock(), schema_editor.allow_product_changes():
        state = State.locked_row()
        if state.shipped_level >= SHIPPED_LEVEL:
            return
        if state.shipped_level < 1:
            for name, (attributes, columns) in SHIPPED_TABLES.items():
                _create_table(name, attributes, columns)
            for name, column_names in READABLE_COLUMNS.items():
                _create_rules(Table.objects.get(name=name), column_names)
        if state.shipped_level < 2:
            for table in Table.objects.filter(is_system=True, name__in=MANAGED_TABLES):
                _create_rules_for_role(table, *MANAGED_TABLES[table.name])
        if state.shipped_level < 3:
            _enable_hot_updates()
        if state.shipped_level < 4:
            description = "Any signed-in user can comment on records that they can read."
            comments = Table.objects.filter(name="sys_comment", is_system=True)
            Rule.objects.bulk_create(
                Rule(operation=Rule.Operation.CREATE, table=table, description=description) for table in comments
            )
        if state.shipped_level < 5:
            _add_opening_defaults()
        if state.shipped_level < 6:
            _add_set_on_change_rules()
        State.objects.filter(pk=state.pk).update(shipped_level=SHIPPED_LEVEL)
        State.increment_version()


def _enable_hot_updates() -> None:
    """Enable HOT updates of `task`, also in databases that already have the table."""
    column = _unchanged_column("state")
    if column is None or schema_editor.count_values(column) > MAX_RECORDS_TO_CHANGE:
        return
    if column.is_indexed:
        column.is_indexed = False
        saving.save_column(column)
    schema_editor.enable_hot_updates(column.table)


def _add_opening_defaults() -> None:
    """Add the defaults of `opened_at` and `opened_by`, also in databases that already have the table."""
    for name in ("opened_at", "opened_by"):
        column = _unchanged_column(name)
        if column is not None and not column.default_value:
            column.default_value = TASK_COLUMNS[name]["default_value"]
            saving.save_column(column)


def _unchanged_column(name: str) -> Column | None:
    """The column of `task`, unless an administrator has changed or deleted it."""
    column = Column.objects.select_related("table").filter(table__name="task", name=name).first()
    return None if column is None or Column.history.filter(sys_id=column.pk).exists() else column


def _add_set_on_change_rules() -> None:
    columns = {column.name: column for column in Column.objects.filter(table__name="task").select_related("table")}
    for name, (value, text, clears) in TASK_SET_RULES.items():
        if "state" in columns and name in columns:
            rule = SetRule(column=columns[name], watched=columns["state"], value=value, set_to=text, clears=clears)
            with suppress(ValidationError):  # an administrator gave the column another type, or made it mandatory
                saving.save_set_on_change_rule(rule)


def _create_table(name: str, attributes: dict[str, Any], columns: dict[str, dict[str, Any]]) -> None:
    table = Table(name=name, **attributes)
    saving.save_table(table)
    # Created together, because creating and checking thirty columns one by one would take seconds.
    Column.objects.bulk_create(_build_column(table, column, values) for column, values in columns.items())
    stored_columns = table.columns.filter(name__in=columns).select_related("reference_table")
    columns_by_name = {column.name: column for column in stored_columns}
    schema_editor.add_columns(table, list(columns_by_name.values()))
    Choice.objects.bulk_create(
        Choice(column=columns_by_name[column], value=value, label=label, position=position)
        for column, values in columns.items()
        for position, (value, label) in enumerate(values.get("choices", {}).items(), 1)
    )


def _build_column(table: Table, name: str, values: dict[str, Any]) -> Column:
    attributes = dict(values)
    choices, target = attributes.pop("choices", None), attributes.pop("to", None)
    type_name = "choice" if choices else "reference" if target else "string"
    if target:
        attributes["reference_table"] = Table.objects.get(name=target)
    label = name.replace("_", " ").capitalize()
    return Column(table=table, name=name, **{"type": type_name, "label": label} | attributes)


def _create_rules(table: Table, columns: tuple[str, ...]) -> None:
    admin = Role.objects.get(name=roles.ADMIN).pk
    subject: dict[str, Any] = {"operation": Rule.Operation.READ, "table": table}
    Rule.objects.bulk_create(
        [
            Rule(**subject, description="Any signed-in user can see the table."),
            Rule(**subject, column_name="*", roles=[admin], description="Other columns are for administrators only."),
            *(Rule(**subject, column_name=name, description="Any signed-in user can read it.") for name in columns),
        ]
    )


def _create_rules_for_role(table: Table, role: str, operations: tuple[Rule.Operation, ...]) -> None:
    role_ids = [Role.objects.get(name=role).pk]
    Rule.objects.bulk_create(
        Rule(operation=operation, table=table, roles=role_ids, description=f"For users with the role {role}.")
        for operation in operations
    )
