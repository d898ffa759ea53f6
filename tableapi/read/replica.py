"""Reads lists from the replica if the client allows it and the replica is up to date."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError
from psycopg.errors import QueryCanceled

from system import process_cache
from system.error_details import sqlstate_of
from tableapi.database import statement_runner
from tableapi.query.parameters import ListRequest
from tableapi.sql.operators import MEMBERS_TABLE
from tableapi.sql.select import Statement

from .context import ReadContext

logger = structlog.get_logger(__name__)

Result = TypeVar("Result")

# How long an unavailable replica is not used: connecting to a host that disappeared takes 2 s.
RETRY_DELAY_S = 5.0
_unavailable_until: list[float] = []
process_cache.register("pause of the replica", _unavailable_until.clear)


def read(context: ReadContext, request: ListRequest, statement: Statement, run: Callable[[str], Result]) -> Result:
    """Return the result of `run` on the replica, or on the primary if the replica must not be used or fails.

    A replica cancels statements that delay replication.
    """
    if request.allows_replica and MEMBERS_TABLE not in statement.sql and statement_runner.REPLICA in settings.DATABASES:
        inputs = context.inputs()
        statement_runner.check_version(inputs)
        if not _unavailable_until or _unavailable_until[-1] <= time.monotonic():
            try:
                # "Everything else, credentials and rules included, is read from the primary", and so is the version of
                # the rules. A replica with another version is not used.
                if statement_runner.catalogue_version(inputs, statement_runner.REPLICA) == inputs.version:
                    return run(statement_runner.REPLICA)
            except (OperationalError, InterfaceError) as error:
                if isinstance(error.__cause__, QueryCanceled):
                    raise
                logger.warning("replica_unavailable", sqlstate=sqlstate_of(error))
                _unavailable_until[:] = [time.monotonic() + RETRY_DELAY_S]
    return run(DEFAULT_DB_ALIAS)
