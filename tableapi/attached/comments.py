"""Comments on records. Readers of the record can see them; the rules of `sys_comment` decide who can add one."""

import re
from typing import Any

from django.db import transaction

from system.errors import AccessDenied, InvalidInput
from system.strict_json import InvalidJson
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import CREATE, USER_TABLE, Catalogue, Table
from tableapi.database import statement_runner
from tableapi.models import Comment
from tableapi.models.attached import MAX_COMMENT_LENGTH
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.query.parameters import RawParameters
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import EntryPage, format_time
from tableapi.write import permission_queries

from .records import OpenRecord, open_record

# A login after an @, unless the @ follows a word, as in an email address.
MENTION = re.compile(r"(?<![\w.@+-])@([\w.@+-]*\w)")
MAX_MENTIONS = 20


@on_current_catalogue
def read_comments(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, raw: RawParameters) -> EntryPage:
    return comment_page(open_record(catalogue, caller, table, sys_id), raw)


def comment_page(record: OpenRecord, raw: RawParameters) -> EntryPage:
    return record.page(Comment, raw, comment_entry)


@on_current_catalogue
def create_comment(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, body: Any) -> dict[str, Any]:
    text = _parse_text(body)
    with transaction.atomic():
        record = open_record(catalogue, caller, table, sys_id, lock=True)
        mentions = _mentioned_users(record.context, text)
        comment = Comment.objects.create(**record.key_columns, text=text, mentions=mentions)
        _check_permission(record.context, comment)
        return comment_entry(comment)


@on_current_catalogue
def change_comment(
    catalogue: Catalogue, caller: Caller, table: str, sys_id: str, comment_id: str, body: Any
) -> dict[str, Any]:
    text = _parse_text(body)
    with transaction.atomic():
        record = open_record(catalogue, caller, table, sys_id)
        comment = _lock_changeable_comment(record, comment_id, "change", allow_admin=False)
        comment.text, comment.mentions = text, _mentioned_users(record.context, text)
        comment.save()
        _check_permission(record.context, comment)
        return comment_entry(comment)


@on_current_catalogue
def delete_comment(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, comment_id: str) -> dict[str, Any]:
    with transaction.atomic():
        record = open_record(catalogue, caller, table, sys_id)
        _lock_changeable_comment(record, comment_id, "delete", allow_admin=True).delete()
    return {"sys_id": comment_id}


def may_comment(view: CallerView) -> bool:
    """Whether the rules let the caller comment at all. A condition is checked only when a comment is created."""
    comments = _comment_table(view)
    return comments is not None and view.permissions.record_decision(CREATE, comments) != NEVER


def comment_entry(comment: Comment) -> dict[str, Any]:
    return {
        "sys_id": comment.pk,
        "text": comment.text,
        "mentions": comment.mentions,
        "sys_created_at": format_time(comment.sys_created_at),
        "sys_created_by": comment.sys_created_by,
        "sys_updated_at": format_time(comment.sys_updated_at),
    }


def _lock_changeable_comment(record: OpenRecord, comment_id: str, verb: str, *, allow_admin: bool) -> Comment:
    comment = record.row(Comment, comment_id, lock=True)
    is_admin = allow_admin and record.context.view.permissions.is_admin
    if comment.sys_created_by != record.context.caller.user_id and not is_admin:
        raise AccessDenied(f"You can only {verb} your own comments.")
    return comment


def _check_permission(context: ReadContext, comment: Comment) -> None:
    """Check that the caller may create this comment, which is already written. The error undoes the write."""
    comments, permissions = _comment_table(context.view), context.view.permissions
    is_allowed = False
    if comments is not None:
        decision = permissions.record_decision(CREATE, comments)
        is_allowed = decision == ALWAYS
        if decision not in (ALWAYS, NEVER):
            statement = permission_queries.decisions_statement(comments, [decision])
            ((_, _, (is_allowed,)),) = statement_runner.fetch(statement, context.inputs(sys_id=comment.pk))
    if not is_allowed:
        raise AccessDenied("You are not allowed to comment on this record.")


def _comment_table(view: CallerView) -> Table | None:
    table = view.catalogue.tables.get(Comment._meta.db_table)
    return table if table is not None and table.is_system else None  # a designed table may have this name


def _parse_text(body: Any) -> str:
    if not isinstance(body, dict) or body.keys() != {"text"}:
        raise InvalidJson('The body must be a JSON object that contains only "text".')
    text = body["text"]
    if not isinstance(text, str):
        raise InvalidInput("Expected a string.", field="text")
    if not text.strip():
        raise InvalidInput("A value is required.", code="mandatory", field="text")
    if len(text) > MAX_COMMENT_LENGTH:
        raise InvalidInput(f"The text must not exceed {MAX_COMMENT_LENGTH:,} characters.", field="text")
    return text


def _mentioned_users(context: ReadContext, text: str) -> list[str]:
    """The ids of the mentioned users whose record and login the author can read."""
    logins = list(dict.fromkeys(MENTION.findall(text)))
    if len(logins) > MAX_MENTIONS:
        raise InvalidInput(f"A comment can mention at most {MAX_MENTIONS} users.", field="text")
    view = context.view
    users = view.catalogue.tables.get(USER_TABLE)
    login = view.column(users, "login") if users is not None else None
    if not logins or users is None or login is None or not view.can_read(users):
        return []
    statement = view.cached(
        "mentioned",
        lambda: permission_queries.display_value_statement(view.permissions, users, "login", login[1]),
    )
    rows = statement_runner.fetch(statement, context.inputs(names=logins))
    return sorted(first for _, first, last in rows if first == last)
