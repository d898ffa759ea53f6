"""Retries a read or write if the catalogue that it used was outdated."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.db import DatabaseError, DataError, NotSupportedError, ProgrammingError

from system.encoded_query import QueryError
from system.errors import ServiceError, Unavailable
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import catalogue_loader
from tableapi.database.statement_runner import CatalogueChanged
from tableapi.query.parameters import invalid_query

MAX_ATTEMPTS = 3

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def on_current_catalogue(
    function: Callable[Concatenate[Catalogue, Parameters], Result],
) -> Callable[Parameters, Result]:
    """Call the function with this process's catalogue, and again with a newer one if that is outdated.

    The statement runner raises CatalogueChanged if a statement ran under another version. Other errors, such as an
    unknown column, are retried only if there is a newer version. A QueryError is reported for `sysparm_query`.
    """

    @wraps(function)
    def call_with_retries(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        catalogue = catalogue_loader.cached_catalogue()
        for _ in range(MAX_ATTEMPTS):
            try:
                return function(catalogue, *args, **kwargs)
            except CatalogueChanged:
                catalogue = catalogue_loader.reload_if_changed()
            except (ServiceError, QueryError, DatabaseError) as error:
                if not _may_be_outdated(error):
                    raise
                newest = catalogue_loader.reload_if_changed()
                if newest.version == catalogue.version:
                    if isinstance(error, QueryError):
                        raise invalid_query(error) from None
                    raise
                catalogue = newest
        raise Unavailable

    return call_with_retries


def _may_be_outdated(error: Exception) -> bool:
    if isinstance(error, ServiceError):
        return error.status < 500
    # A table or column was dropped or has another type, or the plan of a prepared statement is no longer valid.
    return isinstance(error, QueryError | ProgrammingError | NotSupportedError | DataError)
