"""The form data of the designer's pages."""

import re
from typing import Any

from django.test import Client


def new_row(section: str, number: str, **values: Any) -> dict[str, Any]:
    return {f"{section}-row": [number], **{f"{section}-{number}-{name}": value for name, value in values.items()}}


def together(*parts: dict[str, Any]) -> dict[str, Any]:
    """Join form data; the numbers of rows add up."""
    joined: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            joined[name] = [*joined.get(name, []), *value] if name.endswith("-row") else value
    return joined


def shown_data(client: Client, table: str) -> dict[str, Any]:
    """What a browser would send if the page of the table were saved unchanged."""
    from lxml import html

    response = client.get(f"/design/{table}/")
    assert response.status_code == 200
    (form,) = html.fromstring(response.content.decode()).xpath("//form[@id='design-form']")
    for template in form.xpath(".//template"):
        template.getparent().remove(template)
    data: dict[str, Any] = {}
    for control in form.xpath(".//input | .//select | .//textarea"):
        name, kind = control.get("name"), control.get("type")
        if not name or control.get("disabled") is not None:
            continue
        if kind in ("checkbox", "radio") and control.get("checked") is None:
            continue
        value = control.get("value", "on") if control.tag == "input" else control.value
        if kind is not None and kind not in ("checkbox", "radio"):
            value = control.get("value", "")
        if name.endswith(("-row", "-roles")) or name.startswith(
            ("rules-cell", "rules-stored", "rules-role", "rules-column")
        ):
            data.setdefault(name, []).append(value)
        else:
            data[name] = (value or "").removeprefix("\n")
    return data


def row_of(data: dict[str, Any], section: str, name: str, value: str) -> str:
    """The prefix of the row of a section in which this control has this value."""
    return next(
        f"{section}-{number}" for number in data[f"{section}-row"] if data.get(f"{section}-{number}-{name}") == value
    )


def page_text(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())
