"""Demo records: tasks of the demo users, form views, and access rules for the tasks."""

from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts import roles
from accounts.demo import DEMO_PREFIX
from accounts.models import Company, Group, Role, User
from system.encoded_query import Moment
from system.records import acting_user
from tableapi.catalogue.definitions import Catalogue, Column
from tableapi.catalogue.definitions import Table as CataloguedTable
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Rule, Table, View, ViewColumn
from tableapi.read.entry_pages import format_time
from tableapi.values import column_values, defaults
from tableapi.write import designed_records

VIEW_NAME = "list"
VIEW_PATHS = ("number", "short_description", "state", "priority", "caller.login", "assigned_user.login")
# The headings of the form with their columns. Columns that few people need are left out.
FORM_VIEW_NAME = "form"
FORM_SECTIONS = {
    "": "number state short_description priority description caller contact company service urgency impact",
    "Assignment": "assignment_group assigned_user followers_list due_date sla_due approval_state parent_id work_notes",
    "History": "opened_at opened_by closed_at closed_by state_changed_at",
}
IS_CALLER = "callerDYNAMICme"
SERVICE_NAMES = ("Email", "Network", "Printing", "Workplace")


class Task(NamedTuple):
    short_description: str
    description: str
    service: str
    state: str
    priority: str
    opened_days_ago: int
    due_in_days: int
    caller: str = "user"
    is_assigned: bool = True


TASKS = (
    Task("Printer on the second floor jams", "Every other page, since this morning.", "Printing", "1", "3", 1, 3),
    Task("Mailbox is full", "I can still receive, but not send.", "Email", "2", "2", 2, 1),
    Task("New laptop for a colleague", "She starts on the first of next month.", "Workplace", "1", "4", 3, 14),
    Task("VPN drops every hour", "Only at home; it works in the office.", "Network", "2", "2", 4, 1),
    Task("Shared calendar is missing", "It was there before the update.", "Email", "3", "3", 5, 4),
    Task("Switch in room 114 is down", "Twelve desks have no network.", "Network", "2", "1", 0, 0, "agent"),
    Task("Toner for the color printer", "Magenta is at five percent.", "Printing", "4", "4", 9, 0),
    Task("Monitor flickers", "Worse when it is warm.", "Workplace", "2", "3", 6, 3),
    Task("Forward a former colleague's mail", "To her team's mailbox, for three months.", "Email", "5", "4", 20, 0),
    Task("Guest Wi-Fi for Thursday", "About thirty visitors, one day.", "Network", "1", "3", 1, 2),
    Task("Keyboard with a Cyrillic layout", "", "Workplace", "1", "4", 2, 10, is_assigned=False),
    Task("Email to a customer bounces", "The bounce mentions a missing SPF record.", "Email", "2", "1", 1, 0),
    Task("Scanner produces blank pages", "Only from the feeder, not from the glass.", "Printing", "3", "3", 8, 5),
    Task("Move four desks to room 220", "The network sockets are labeled.", "Workplace", "1", "4", 4, 20, "agent"),
    Task("Intranet certificate expires soon", "In two weeks.", "Network", "1", "2", 1, 12, "agent"),
    Task("Spam filter is too strict", "Invoices from one supplier are blocked.", "Email", "4", "3", 15, 0),
    Task("Print queue is stuck", "Nothing has been printed since noon.", "Printing", "5", "2", 12, 0, "agent"),
    Task("Docking station has no sound", "", "Workplace", "2", "4", 7, 6, is_assigned=False),
    Task("Slow connection to a branch", "Copying large files takes an hour.", "Network", "3", "2", 10, 2, "agent"),
    Task("Signature with the new logo", "For all mailboxes of the company.", "Email", "1", "4", 3, 30),
)  # fmt: skip
CLOSED_STATE = "5"
WORK_NOTES = "Investigated; see the knowledge base."


def create_demo_records() -> None:
    """Create the records if the demo users exist and the table `task` has never had a rule."""
    task = Table.objects.filter(name="task").first()
    users = {user.login.removeprefix(DEMO_PREFIX): user for user in User.objects.filter(login__startswith=DEMO_PREFIX)}
    if task is None or not users.keys() >= {"agent", "user"} or Rule.history.filter(table=task).exists():
        return
    with transaction.atomic():
        _create_rules(task)
        _create_views(task)
        catalogue = catalogue_loader.reload_if_changed()
        with acting_user.acting_as(users["agent"].pk):
            _create_tasks(catalogue, users)


def _create_rules(task: Table) -> None:
    """ "Demo data adds … rules that name their tables." """
    itil = [Role.objects.get(name=roles.ITIL).pk]
    for operation in (Rule.Operation.READ, Rule.Operation.CREATE, Rule.Operation.WRITE):
        description = f"Demo: users with the role itil may {operation} all tasks."
        saving.save_rule(Rule(table=task, operation=operation, roles=itil, description=description))
    for operation in (Rule.Operation.READ, Rule.Operation.CREATE):
        description = f"Demo: users may {operation} tasks for which they are the caller."
        saving.save_rule(Rule(table=task, operation=operation, condition=IS_CALLER, description=description))
    description = "Demo: only users with the role itil may read work notes."
    saving.save_rule(
        Rule(table=task, operation=Rule.Operation.READ, column_name="work_notes", roles=itil, description=description)
    )


def _create_views(task: Table) -> None:
    form_paths = [(path, section) for section, paths in FORM_SECTIONS.items() for path in paths.split()]
    for name, paths in ((VIEW_NAME, [(path, "") for path in VIEW_PATHS]), (FORM_VIEW_NAME, form_paths)):
        view = View(table=task, name=name)
        saving.save_view(view)
        # Together, because each check of a path loads the catalogue.
        ViewColumn.objects.bulk_create(
            ViewColumn(view=view, path=path, section=section, position=position)
            for position, (path, section) in enumerate(paths, 1)
        )


def _create_tasks(catalogue: Catalogue, users: dict[str, User]) -> None:
    service = catalogue.tables["service"]
    task = catalogue.tables["task"]
    services = {
        name: designed_records.insert(catalogue, service, _stored_values(service, {"name": name}))
        for name in SERVICE_NAMES
    }
    group = Group.objects.filter(name="Service Desk").values_list("sys_id", flat=True).first()
    company = Company.objects.filter(name="Example Company").values_list("sys_id", flat=True).first()
    shared = {"assignment_group": group, "company": company, "opened_by": users["agent"].pk}
    first_id = None
    for demo_task in TASKS:
        parent = first_id if demo_task.short_description == "Docking station has no sound" else None
        values = shared | _task_values(demo_task, users, services) | {"parent_id": parent}
        sys_id = designed_records.insert(catalogue, task, _stored_values(task, values))
        first_id = first_id or sys_id


def _task_values(demo_task: Task, users: dict[str, User], services: dict[str, str]) -> dict[str, Any]:
    now, agent, caller = timezone.now(), users["agent"].pk, users[demo_task.caller].pk
    is_closed = demo_task.state == CLOSED_STATE
    return {
        "short_description": demo_task.short_description,
        "description": demo_task.description or None,
        "subject": demo_task.short_description,
        "service": services[demo_task.service],
        "state": demo_task.state,
        "priority": demo_task.priority,
        "caller": caller,
        "contact": caller,
        "assigned_user": agent if demo_task.is_assigned else None,
        "followers_list": [agent, caller] if demo_task.priority == "1" and caller != agent else None,
        "work_notes": WORK_NOTES if demo_task.state != "1" else None,
        "active": not is_closed,
        "opened_at": format_time(now - timedelta(days=demo_task.opened_days_ago)),
        "due_date": format_time(now + timedelta(days=demo_task.due_in_days)),
        "closed_at": format_time(now) if is_closed else None,
        "closed_by": agent if is_closed else None,
        "attention_required": demo_task.priority == "1",
    }


def _stored_values(table: CataloguedTable, row: dict[str, Any]) -> dict[Column, Any]:
    """Return the values that the API would store: those of the row, and the defaults of other columns."""
    columns = [column for column in table.columns.values() if not column.is_sys]
    moment = Moment(timezone.now(), "")
    values = {column: defaults.default_value(column, moment) for column in columns if column.name not in row}
    values |= {column: column_values.parse(column, row[column.name]) for column in columns if column.name in row}
    return {column: value for column, value in values.items() if value is not None}
