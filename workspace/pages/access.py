"""Who sees what: which records another user can read, and which rules decide. Only for administrators."""

from dataclasses import dataclass, field
from typing import Any

import structlog
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from accounts.models import User
from system.admin import USER_VIEW
from system.errors import AccessDenied, NotFound, ServiceError
from system.models import UserViewUse
from tableapi.access.decision_trace import Reason
from tableapi.access.permissions import Basis
from tableapi.catalogue.definitions import OPERATIONS, USER_TABLE, Column, Rule, Table
from tableapi.preview.user_view import Cell, PreviewRecord, UserView, summary
from tableapi.query.parameters import parse_text
from tableapi.read.context import Caller, ReadContext
from workspace.forms import controls
from workspace.forms.display import column_label, display_text
from workspace.forms.parameters import parameters
from workspace.lists import columns, rows
from workspace.lists.list_state import ListState, parse_state
from workspace.lists.query_description import filter_context, rule_in_words
from workspace.pages.base import WorkspacePage

USER_COLUMN = Column("user", "reference", "", "user", label="User", reference=USER_TABLE)

logger = structlog.get_logger(__name__)


class AccessPage(WorkspacePage):
    """`/access/?user=…&table=…`, with `sysparm_query` for some records, or `record` for one of them. Reads only."""

    http_method_names = ["get", "head", "options"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not self.user().is_superuser:
            raise AccessDenied("Only administrators can see what other users see.")
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        texts = {name: parse_text(request.GET, name) for name in ("user", "table", "record")}
        values: dict[str, Any] = {
            "control": controls.control_of_text(self.context(), USER_COLUMN, texts["user"]),
            "tables": self.readable_tables(),
            "state": ListState(texts["table"]),
            "texts": texts,
            "kept": {"sysparm_query": request.GET.get("sysparm_query", ""), "record": texts["record"]},
        }
        if not (texts["user"] and texts["table"]):
            return self.render("access", values)
        try:
            user = self.find_user(texts["user"])
            values |= {"state": parse_state(texts["table"], request.GET), "shown_user": user}
            self.log_use(user, texts["table"], texts["record"])
            values |= self.read(texts["table"], filter_context, values["state"].query)
            preview = self.read(texts["table"], read_preview, user, values["state"], texts["record"])
        except ServiceError as error:
            if error.status not in (400, 404, 422):
                raise
            return self.render("access", values, error)
        return self.render("access", values | preview)

    def log_use(self, user: User, table: str, record: str) -> None:
        """ "Each use is logged": also if it is refused. Administrators read the entries in the administration."""
        logger.info("user_view_opened", viewer=self.user().login, user=user.login, table=table, record=record)
        UserViewUse.objects.create(
            user=self.user(),
            content_type=ContentType.objects.get_for_model(User),
            object_id=user.pk,
            object_repr=user.login[:200],
            action_flag=USER_VIEW,
            change_message=f"{table}/{record}" if record else table,
        )

    def find_user(self, text: str) -> User:
        """A user by the id that the picker sends, or by login. Raises an error if the viewer cannot read them."""
        sys_id = controls.parse_control(self.context(), USER_COLUMN, text)
        user = User.objects.filter(pk=sys_id).first()
        if user is None:
            raise NotFound("There is no such user.")
        return user


@dataclass
class ReasonList:
    """The different reasons on the page in the words of the viewer, numbered so that cells can refer to them."""

    viewer: ReadContext
    table: Table
    numbers: dict[Reason, int] = field(default_factory=dict)

    def add(self, reason: Reason) -> dict[str, Any]:
        """What a cell shows. A column without a rule follows the record, so it needs no number."""
        number = 0 if reason.basis is Basis.RECORD else self.numbers.setdefault(reason, len(self.numbers) + 1)
        return {"reason": reason, "number": number}

    def texts(self) -> list[dict[str, Any]]:
        return [
            {"is_allowed": reason.is_allowed, "basis": reason.basis, "rules": list(map(self._in_words, reason.rules))}
            for reason in self.numbers
        ]

    def _in_words(self, rule: Rule) -> dict[str, str]:
        return rule_in_words(self.viewer, self.table, rule)


def read_preview(context: ReadContext, table: Table, user: User, state: ListState, record: str) -> dict[str, Any]:
    """What the template shows of one record, with all its columns, or of a page of the list."""
    shown = Caller.of(user, context.caller.api_url).context(context.view.catalogue)
    if record:
        listed = [column for column in table.columns.values() if column.is_readable]
    else:
        listed = [item.column for item in columns.list_columns(shown.view, table) if "." not in item.path]
    preview, reasons = UserView(context, shown, table, listed), ReasonList(context, table)
    raw = parameters(sysparm_query=state.query, sysparm_limit=rows.PAGE_SIZE, **state.position)
    records = [preview.read_record(record)] if record else preview.read_page(raw)
    name = rows.link_path(table, columns.list_columns(context.view, table))
    return {
        "table": table,
        "can_see_table": shown.view.permissions.can_see_table(table),
        "summary": [(operation, reasons.add(summary(shown, table, operation))) for operation in OPERATIONS],
        "headers": [{"label": column_label(column), "is_link": column.name == name} for column in listed],
        "rows": [_row(context, reasons, item) for item in records],
        "record": record,
        "hidden_count": preview.hidden_count,
        "next_page": preview.next_page,
        "reasons": reasons.texts(),
    }


def _row(context: ReadContext, reasons: ReasonList, record: PreviewRecord) -> dict[str, Any]:
    return {
        "sys_id": record.sys_id,
        "operations": [(operation, reasons.add(reason)) for operation, reason in record.reasons.items()],
        "cells": [_cell(context, reasons, cell) for cell in record.cells],
    }


def _cell(context: ReadContext, reasons: ReasonList, cell: Cell) -> dict[str, Any]:
    return {
        **reasons.add(cell.reason),
        "label": column_label(cell.column),
        "name": cell.column.name,
        "text": rows.one_line(display_text(cell.column, cell.field, context.caller.time_zone)),
        "is_hidden": cell.is_hidden,
        "write": reasons.add(cell.write_reason) if cell.write_reason else None,
    }
