"""What a section of the designer provides. All sections of a page are parts of one HTML form with one Save button.

A section is a class like `TableSection`. Its order in `design_form.SECTIONS` is the order on the page and of saving.

    section = SomeSection(request.POST or None, table)   # `table` is unsaved (`table.is_new`) for a new table
    section.is_valid()                                   # only what needs no database; shows errors at their fields
    list(section.costs())                                # sentences: what the change costs; nothing is changed
    section.save()                                       # in one transaction under the design lock, see below
    section.is_valid()                                   # False if `save` attached errors
    {% include section.template %}                       # gets `section`, `table` and `form` (the `DesignForm`)

`save` saves what was changed through `save_record` and deletes through `Model.delete()`. At that time the sections
above are saved, so that `table` and its columns exist. It reports a `ValidationError` at its form with `add_errors` and
does not raise it. After the first section with errors, everything is rolled back, and the page shows what was typed.

The names of a section's controls start with a prefix of its own, such as `rules-`.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.http import QueryDict

from system.records import savers
from tableapi.models import Table


class Section:
    title = ""
    template = ""
    # The path of its own script among the static files, if it has one.
    script = ""

    # None for the rules of any table.
    table: Any

    def __init__(self, data: QueryDict | None, table: Table | None) -> None:
        self.data, self.table = data, table

    @property
    def anchor(self) -> str:
        """The id of the heading, for links such as `/design/task/#section-columns`."""
        return f"section-{PurePath(self.template).stem}"

    def is_valid(self) -> bool:
        return True

    def costs(self) -> Iterator[str]:
        """What the change that was typed costs, one sentence each. Called before `save`, in no transaction."""
        yield from ()

    def save(self) -> None:
        """Save what was changed."""


def save_record(record: Any) -> None:
    """Save a table, column, choice, view, view column or rule as the Table API does. A refusal changes nothing."""
    with transaction.atomic():
        savers.saver_of(type(record)).save(record)


def add_errors(form: Any, error: ValidationError) -> None:
    """Show the errors at the fields of the form; those of other fields above it."""
    errors = error.message_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.messages}
    for name, messages in errors.items():
        form.add_error(name if name in form.fields else None, messages)
