"""What people set up for themselves: saved lists, the columns of each list, and the records they opened last."""

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import User
from system import plain_sql
from system.records.record import Record

MAX_NAME_LENGTH = 100
MAX_RECENT_RECORDS = 20
RECORD_VISIT = """
    WITH visit AS (
        INSERT INTO workspace_recent_record (user_id, table_key, record_id, opened_at)
        VALUES (%(user)s, %(table)s, %(record)s, clock_timestamp())
        ON CONFLICT (user_id, table_key, record_id) DO UPDATE SET opened_at = excluded.opened_at
    )
    DELETE FROM workspace_recent_record WHERE id IN (
        SELECT id FROM workspace_recent_record
        WHERE user_id = %(user)s AND (table_key, record_id) <> (%(table)s, %(record)s)
        ORDER BY opened_at DESC OFFSET %(count)s - 1
    )
"""

# Runs for every list, so that most need no statement for saved lists.
PERSONAL_SETTINGS = """
    SELECT
        (SELECT columns FROM workspace_list_layout WHERE user_id = %(user)s AND table_key = %(table)s),
        EXISTS (
            SELECT FROM workspace_saved_list WHERE table_key = %(table)s AND (user_id = %(user)s OR roles <> '{}')
        )
"""


class SavedList(Record):
    """A query with a name. `table_key` is that of the change log. `roles` contains the ids of roles that share it."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    table_key = models.CharField(max_length=63, db_index=True)
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    query = models.TextField(blank=True, default="")
    # Column paths; empty for the columns of the view.
    columns = ArrayField(models.CharField(max_length=400), default=list, blank=True)
    roles = ArrayField(models.CharField(max_length=32), default=list, blank=True)

    class Meta(Record.Meta):
        db_table = "workspace_saved_list"
        ordering = ["name", "sys_id"]
        constraints = [models.UniqueConstraint(fields=["user", "table_key", "name"], name="saved_list_once")]

    def __str__(self) -> str:
        return self.name


class ListLayoutManager(models.Manager["ListLayout"]):
    def read_settings(self, user_id: str, table_key: str) -> tuple[list[dict[str, Any]], bool]:
        """The columns of the user's layout, and whether the table has lists that they saved or that are shared."""
        ((columns, has_saved_lists),) = plain_sql.fetch_rows(PERSONAL_SETTINGS, {"user": user_id, "table": table_key})
        return json.loads(columns or "[]"), has_saved_lists


class ListLayout(models.Model):
    """The columns that a user chose for the list of a table, in order, each with its width in pixels (0: automatic)."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    table_key = models.CharField(max_length=63)
    columns = models.JSONField(default=list)
    objects = ListLayoutManager()

    class Meta:
        db_table = "workspace_list_layout"
        constraints = [models.UniqueConstraint(fields=["user", "table_key"], name="list_layout_once")]

    def __str__(self) -> str:
        return self.table_key


class RecentRecord(models.Model):
    """A record that a user opened. Only its id is kept, so what it shows follows the rules of now."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    table_key = models.CharField(max_length=63)
    record_id = models.CharField(max_length=32)
    opened_at = models.DateTimeField()

    class Meta:
        db_table = "workspace_recent_record"
        constraints = [models.UniqueConstraint(fields=["user", "table_key", "record_id"], name="recent_record_once")]
        indexes = [models.Index(fields=["user", "-opened_at"], name="recent_record_latest")]

    def __str__(self) -> str:
        return self.record_id

    @staticmethod
    def add_visit(user_id: str, table_key: str, record_id: str) -> None:
        """Remember that the user opened the record, and forget all but their latest ones."""
        values = {"user": user_id, "table": table_key, "record": record_id, "count": MAX_RECENT_RECORDS}
        plain_sql.run_statement(RECORD_VISIT, values)
