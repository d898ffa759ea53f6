"""Demo records for a first look: tasks of the demo people, a form view, and the rules that open them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts import roles
from accounts.demo import PREFIX
from accounts.models import Company, Group, Role, User
from system.records import acting_user
from tableapi.catalogue.definitions import Catalogue, Column
from tableapi.catalogue.definitions import Table as CataloguedTable
from tableapi.database import catalogue_loader
from tableapi.models import Rule, Table, View, ViewColumn
from tableapi.values import column_values, defaults
from tableapi.write import designed_records

VIEW = "list"
VIEW_PATHS = ("number", "short_description", "state", "priority", "caller.login", "assigned_user.login")
OWN = "callerDYNAMICme"
SERVICES = ("E-mail", "Network", "Printing", "Workplace")


class Demo(NamedTuple):
    """A task: days since it was opened and until it is due; columns that are left empty are left out."""

    short_description: str
    description: str
    service: str
    state: str
    priority: str
    opened: int
    due: int
    caller: str = "user"
    assigned: bool = True


TASKS = (
    Demo("Printer on the second floor jams", "Every second page, since this morning.", "Printing", "1", "3", 1, 3),
    Demo("Mailbox is full", "I can still receive, but not send.", "E-mail", "2", "2", 2, 1),
    Demo("New notebook for a colleague", "She starts on the first of next month.", "Workplace", "1", "4", 3, 14),
    Demo("VPN drops every hour", "At home only; in the office all is well.", "Network", "2", "2", 4, 1),
    Demo("Shared calendar is missing", "It was there before the update.", "E-mail", "3", "3", 5, 4),
    Demo("Switch in room 114 is down", "Twelve desks are without network.", "Network", "2", "1", 0, 0, "agent"),
    Demo("Toner for the colour printer", "Magenta is at five percent.", "Printing", "4", "4", 9, 0),
    Demo("Monitor flickers", "Worse when it is warm.", "Workplace", "2", "3", 6, 3),
    Demo("Forward mail of a former colleague", "To her team's mailbox, for three months.", "E-mail", "5", "4", 20, 0),
    Demo("Guest Wi-Fi for Thursday", "About thirty visitors, one day.", "Network", "1", "3", 1, 2),
    Demo("Keyboard with a Cyrillic layout", "", "Workplace", "1", "4", 2, 10, assigned=False),
    Demo("Mail to a customer comes back", "The answer speaks of a missing SPF record.", "E-mail", "2", "1", 1, 0),
    Demo("Scanner sends empty pages", "Only from the feeder, not from the glass.", "Printing", "3", "3", 8, 5),
    Demo("Move four desks to room 220", "Network sockets there are labelled.", "Workplace", "1", "4", 4, 20, "agent"),
    Demo("Certificate of the intranet ends soon", "In two weeks.", "Network", "1", "2", 1, 12, "agent"),
    Demo("Spam filter is too strict", "Invoices of one supplier end there.", "E-mail", "4", "3", 15, 0),
    Demo("Print queue is stuck", "Nothing has come out since noon.", "Printing", "5", "2", 12, 0, "agent"),
    Demo("Docking station has no sound", "", "Workplace", "2", "4", 7, 6, assigned=False),
    Demo("Slow connection to the branch", "Copies of large files take an hour.", "Network", "3", "2", 10, 2, "agent"),
    Demo("Signature with the new logo", "For all mailboxes of the company.", "E-mail", "1", "4", 3, 30),
)  # fmt: skip
CLOSED = "5"
WORK_NOTES = "Looked into it, see the knowledge base."


def make() -> None:
    """Once, for the demo people: never where the tasks ever had a rule, ours or an administrator's."""
    task = Table.objects.filter(name="task").first()
    people = {user.login.removeprefix(PREFIX): user for user in User.objects.filter(login__startswith=PREFIX)}
    if task is None or not people.keys() >= {"agent", "user"} or Rule.history.filter(table=task).exists():
        return
    with transaction.atomic():
        _make_rules(task)
        _make_view(task)
        catalogue = catalogue_loader.reload_if_changed()
        with acting_user.acting_as(people["agent"].pk):
            _make_tasks(catalogue, people)


def _make_rules(task: Table) -> None:
    """ "Demo data adds … rules that name their tables." """
    itil = [Role.objects.get(name=roles.ITIL).pk]
    for operation in (Rule.Operation.READ, Rule.Operation.CREATE, Rule.Operation.WRITE):
        about = f"Demo: who works on tasks may {operation} all."
        Rule(table=task, operation=operation, roles=itil, description=about).save()
    for operation in (Rule.Operation.READ, Rule.Operation.CREATE):
        about = f"Demo: everybody may {operation} tasks that they are the caller of."
        Rule(table=task, operation=operation, condition=OWN, description=about).save()
    about = "Demo: work notes are for those who work on tasks."
    Rule(table=task, operation=Rule.Operation.READ, column_name="work_notes", roles=itil, description=about).save()


def _make_view(task: Table) -> None:
    view = View(table=task, name=VIEW)
    view.save()
    for position, path in enumerate(VIEW_PATHS, 1):
        ViewColumn(view=view, path=path, position=position).save()


def _make_tasks(catalogue: Catalogue, people: dict[str, User]) -> None:
    service = catalogue.tables["service"]
    task = catalogue.tables["task"]
    services = {name: designed_records.insert(catalogue, service, _given(service, {"name": name})) for name in SERVICES}
    group = Group.objects.filter(name="Service Desk").values_list("sys_id", flat=True).first()
    company = Company.objects.filter(name="Example Company").values_list("sys_id", flat=True).first()
    shared = {"assignment_group": group, "company": company, "opened_by": people["agent"].pk}
    first = None
    for each, told in zip(TASKS, _told(people, services), strict=True):
        parent = first if each.short_description == "Docking station has no sound" else None
        sys_id = designed_records.insert(catalogue, task, _given(task, shared | told | {"parent_id": parent}))
        first = first or sys_id


def _told(people: dict[str, User], services: dict[str, str]) -> Iterator[dict[str, Any]]:
    now = timezone.now()
    agent = people["agent"].pk
    for each in TASKS:
        caller = people[each.caller].pk
        is_closed = each.state == CLOSED
        yield {
            "short_description": each.short_description,
            "description": each.description or None,
            "subject": each.short_description,
            "service": services[each.service],
            "state": each.state,
            "priority": each.priority,
            "caller": caller,
            "contact": caller,
            "assigned_user": agent if each.assigned else None,
            "followers_list": [agent, caller] if each.priority == "1" and caller != agent else None,
            "work_notes": WORK_NOTES if each.state != "1" else None,
            "active": not is_closed,
            "opened_at": _instant(now - timedelta(days=each.opened)),
            "due_date": _instant(now + timedelta(days=each.due)),
            "closed_at": _instant(now) if is_closed else None,
            "closed_by": agent if is_closed else None,
            "attention_required": each.priority == "1",
        }


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _given(table: CataloguedTable, told: dict[str, Any]) -> dict[Column, Any]:
    """As the API would store it: what is told, and the defaults of the rest."""
    found = {}
    for column in table.columns.values():
        if column.is_sys:
            continue
        value = column_values.read(column, told[column.name]) if column.name in told else defaults.default(column)
        if value is not None:
            found[column] = value
    return found
