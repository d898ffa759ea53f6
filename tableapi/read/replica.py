"""Chooses the database of a list: the replica where the client allows it and the replica is up to date."""

from __future__ import annotations

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError

from system.error_details import sqlstate_of
from tableapi.database import statement_runner
from tableapi.query.parameters import ListRequest
from tableapi.sql.operators import MEMBERSHIPS
from tableapi.sql.select import Statement

from .context import ReadContext

logger = structlog.get_logger(__name__)


def choose_database(context: ReadContext, request: ListRequest, statement: Statement) -> str:
    """ "Everything else, credentials and rules included, is read from the primary": so is the version of the rules. A
    replica that has another version, or is not available, is not used; nor is one where group membership decides."""
    if not request.allows_replica or statement_runner.REPLICA not in settings.DATABASES or MEMBERSHIPS in statement.sql:
        return DEFAULT_DB_ALIAS
    inputs = context.inputs()
    statement_runner.check_version(inputs)
    try:
        version = statement_runner.catalogue_version(inputs, statement_runner.REPLICA)
    except (OperationalError, InterfaceError) as error:
        logger.warning("replica_unavailable", sqlstate=sqlstate_of(error))
        return DEFAULT_DB_ALIAS
    return statement_runner.REPLICA if version == inputs.version else DEFAULT_DB_ALIAS
