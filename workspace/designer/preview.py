"""How the form and the list of a table will look, from what was typed on the page. Nothing is saved."""

from collections.abc import Iterator, Mapping
from typing import Any

from tableapi.catalogue.definitions import Column
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES
from workspace.forms.controls import Control, is_wide
from workspace.forms.display import PATH_SEPARATOR
from workspace.lists.columns import LIST_VIEW, MAX_AUTOMATIC_COLUMNS

from .choice_lines import parse_choices
from .columns_section import ColumnsSection
from .names import name_of_label
from .type_cards import TYPE_CARDS
from .views_section import Entries, ViewsSection, parse_lines

DRAFT_FIELDS = ("label", "name", "type", "mandatory", "choices", "default_value")
FORM_VIEW = "form"
LONG_TYPES = ("text", "wysiwyg", "json", "list")


def preview(columns: ColumnsSection, views: ViewsSection) -> dict[str, Any]:
    drafts = {column.name: column for column in _draft_columns(columns)}
    layouts = dict(_draft_views(views))
    automatic = [name for name, column in drafts.items() if column.type not in LONG_TYPES][:MAX_AUTOMATIC_COLUMNS]
    in_form = _first(layouts, FORM_VIEW) or dict.fromkeys(drafts, "")
    in_list = _first(layouts, LIST_VIEW) or dict.fromkeys(automatic, "")
    sections: dict[str, list[dict[str, Any]]] = {}
    for path, title in in_form.items():
        sections.setdefault(title, []).append(_field(path, drafts))
    return {
        "sections": sections,
        "list": [(_label(path, drafts), _example(drafts.get(path))) for path in in_list],
    }


def _first(layouts: Mapping[str, Entries], name: str) -> Entries:
    return next(filter(None, (layouts.get(key) for key in (name, *DEFAULT_VIEW_NAMES))), {})


def _draft_columns(section: ColumnsSection) -> Iterator[Column]:
    for column in section.inherited:
        yield Column(column.name, column.type, "", column.name, label=column.label, mandatory=column.mandatory)
    for form in section.forms:
        values = {name: form[name].value() for name in DRAFT_FIELDS}
        label, column_type = str(values["label"] or ""), str(values["type"])
        name = str(values["name"] or "") or name_of_label(label)
        if name and column_type in TYPE_CARDS and not form["delete"].value():
            choices = tuple(parse_choices(values["choices"] or "").items())
            default = str(values["default_value"] or "")
            yield Column(
                name, column_type, "", name, label=label, mandatory=bool(values["mandatory"]), choices=choices,
                default="" if default.startswith("javascript:") else default,
            )  # fmt: skip


def _draft_views(section: ViewsSection) -> Iterator[tuple[str, Entries]]:
    for form in section.forms:
        if not form["delete"].value():
            yield str(form["name"].value() or ""), parse_lines(str(form["columns"].value() or ""))


def _field(path: str, drafts: Mapping[str, Column]) -> dict[str, Any]:
    column = drafts.get(path)
    control = None if column is None else Control(column=column, text=column.default, id_prefix="preview-")
    return {"label": _label(path, drafts), "control": control, "is_wide": column is not None and is_wide(column)}


def _label(path: str, drafts: Mapping[str, Column]) -> str:
    first, _, rest = path.partition(".")
    label = drafts[first].label if first in drafts else first
    return f"{label}{PATH_SEPARATOR}{rest}" if rest else label


def _example(column: Column | None) -> str:
    if column is None:
        return "…"
    return next((label for _, label in column.choices), TYPE_CARDS[column.type].example)
