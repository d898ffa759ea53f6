"""Registers how records of a table are saved if `Model.save()` is not enough.

An app registers a saver for its model. Code for any table (the Table API) saves through it, so that it does not
need to import the app.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from system.records.record import Record


class RecordSaver:
    """The default: validate the record, then call its `save()`."""

    # The columns whose new values `prepare` needs.
    prepared_columns: ClassVar[frozenset[str]] = frozenset()

    def prepare(self, sys_id: str, changes: Mapping[str, Any]) -> Any:
        """Do slow work for a change before any lock is taken; the result is passed on as `prepared`."""

    def clean(self, record: Any, prepared: Any = None) -> None:
        record.full_clean(exclude={"sys_id", "password"})

    def save(self, record: Any, prepared: Any = None) -> None:
        record.save()


DEFAULT_SAVER = RecordSaver()
_savers: dict[type[Record], RecordSaver] = {}


def register(model: type[Record], saver: RecordSaver) -> None:
    _savers[model] = saver


def saver_of(model: type[Record]) -> RecordSaver:
    return _savers.get(model, DEFAULT_SAVER)
