"""The caller of a request, and their view of one catalogue."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from accounts.models import User
from system.encoded_query import Condition, Moment
from tableapi.access.caller_view import CallerView, view_for
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.database.statement_runner import ByteRow, Row
from tableapi.query.read_plan import ReadPlan
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementInputs


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class ReadRun:
    """The ids of the records that consecutive requests of a batch read, and their rows after the first read."""

    ids: list[str]
    plan: ReadPlan | None = None
    rows: dict[str, ByteRow] = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """The user who sends a request, and its time. `api_url` is the URL of the Table API as the client called it."""

    user_id: str
    role_names: frozenset[str]
    api_url: str = ""
    now: datetime = field(default_factory=lambda: now())
    time_zone: tzinfo = UTC
    run: ReadRun | None = field(default=None, compare=False)

    @classmethod
    def of(cls, user: User, api_url: str = "") -> "Caller":
        return cls(user.pk, frozenset(user.role_names), api_url, time_zone=user.zone)

    def context(self, catalogue: Catalogue) -> "ReadContext":
        return ReadContext(self, view_for(catalogue, self.role_names))


@dataclass(frozen=True)
class ReadContext:
    """A caller and their view of one catalogue."""

    caller: Caller
    view: CallerView

    @property
    def moment(self) -> Moment:
        return Moment(self.caller.now, self.caller.user_id)

    def inputs(self, conditions: tuple[Condition, ...] = (), **values: Any) -> StatementInputs:
        view, caller = self.view, self.caller
        version, roles = view.catalogue.version, view.sorted_role_names
        return StatementInputs(self.moment, version, roles, conditions, caller.api_url, values, caller.time_zone)

    def fetch(self, statement: Statement, **values: Any) -> list[Row]:
        """Rows without their first column, the version of the catalogue. Raises CatalogueChanged if it differs."""
        rows = statement_runner.fetch(statement, self.inputs(**values))
        return statement_runner.strip_version(rows, self.view.catalogue)

    def fetch_bytes(self, statement: Statement, **values: Any) -> list[ByteRow]:
        rows = statement_runner.fetch_bytes(statement, self.inputs(**values))
        return statement_runner.strip_version(rows, self.view.catalogue)
