"""The form of a new record, with the defaults that the Table API would set, or with the values of another record."""

from collections.abc import Mapping

from system.errors import ServiceError
from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import DisplayMode, OutputOptions
from tableapi.read.context import ReadContext
from tableapi.values import column_values, defaults
from tableapi.write import current_record
from tableapi.write.write_request import WriteInput

from . import record_values
from .controls import form_text, items_of
from .layout import layout
from .record_form import FieldValues, RecordForm, build_sections, errors_by_column, summary
from .submission import body_of, visible_column

# A column can be called `duplicate`, so links use the first name.
DUPLICATE_NAMES = ("_duplicate", "duplicate")


def creatable_columns(context: ReadContext, table: Table) -> list[Column]:
    """The columns that the caller may set. Raises the error of the API if they may create no record."""
    permissions = context.view.permissions
    if permissions.record_decision(CREATE, table) == NEVER:
        raise current_record.create_denied_error(context, table)
    return [
        column
        for column in table.columns.values()
        if not table.is_server_managed(column)
        and permissions.can_see_column(table, column)
        and permissions.column_decision(CREATE, table, column) != NEVER
    ]


def default_text(context: ReadContext, column: Column) -> str:
    """The text of the value that the API sets if the column is not sent."""
    value = column_values.to_log_value(column, defaults.default_value(column, context.moment))
    return form_text(column, {"value": value}, context.caller.time_zone)


def new_form(
    context: ReadContext, table: Table, texts: Mapping[str, str], error: ServiceError | None = None
) -> RecordForm:
    """The form for a new record. Texts of links or of a refused form replace the defaults."""
    columns = creatable_columns(context, table)
    required = [column.name for column in columns if column.name in texts or column.mandatory]
    sections = layout(context.view, table, lambda column: column in columns, required, has_paths=False)
    prefilled = {column.name: default_text(context, column) for column in columns if column.is_readable}
    prefilled |= {column.name: texts[column.name] for column in columns if column.name in texts}
    errors = errors_by_column(error) if error else {}
    values = FieldValues({}, columns, {name: text for name, text in prefilled.items() if text or name in texts}, errors)
    return RecordForm(
        table,
        build_sections(context, sections, values),
        errors=summary(context, table, error) if error else (),
    )


def linked_form(context: ReadContext, table: Table, given: Mapping[str, str]) -> RecordForm:
    """The form with the values of a link: those of a record to copy, and those of columns."""
    source = next((given[name] for name in DUPLICATE_NAMES if name in given and name not in table.columns), "")
    return new_form(context, table, {**(copied_texts(context, table, source) if source else {}), **given})


def copied_texts(context: ReadContext, table: Table, sys_id: str) -> dict[str, str]:
    """The values of a record for a copy of it, without unique ones. References are copied by their ids."""
    columns = [column for column in creatable_columns(context, table) if column.is_readable and not column.is_unique]
    stored = record_values.read_stored(context, table, sys_id, [column.name for column in columns])
    texts = {}
    for column in columns:
        field_ = stored.fields.get(column.name)
        ids = ",".join(item["id"] for item in items_of(column, field_))
        texts[column.name] = ids or form_text(column, field_, context.caller.time_zone)
    return texts


def write_input(context: ReadContext, table: Table, texts: Mapping[str, str]) -> WriteInput:
    """The write of a new record, whose response names it. Raises all errors of the texts together."""
    body = body_of(context, table, {name: text for name, text in texts.items() if is_sent(context, table, name, text)})
    name, can_read = table.display_column.name if table.display_column else "", context.view.can_read(table)
    fields = (name,) if can_read and context.view.column(table, name) is not None else ()
    return WriteInput(body, OutputOptions(fields, display_mode=DisplayMode.DISPLAY))


def is_sent(context: ReadContext, table: Table, name: str, text: str) -> bool:
    """Whether the body needs the column: the API sets defaults itself, also of columns that the caller cannot set."""
    column = visible_column(context, table, name)
    if column is None:
        return True  # the API reports it
    if column.mandatory and not text:
        return not defaults.is_number_default(column)  # so that all errors are found together
    return text != (default_text(context, column) if column.is_readable else "")
