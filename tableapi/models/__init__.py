"""The catalogue of area B: tables, columns, choices, views and rules; saving them changes the database."""

from tableapi.models.catalogue_version import State
from tableapi.models.queues import DeferredRecord, IdempotentAnswer
from tableapi.models.rules import Rule
from tableapi.models.tables import Choice, Column, Table
from tableapi.models.views import View, ViewColumn

__all__ = [
    "Choice",
    "Column",
    "DeferredRecord",
    "IdempotentAnswer",
    "Rule",
    "State",
    "Table",
    "View",
    "ViewColumn",
]
