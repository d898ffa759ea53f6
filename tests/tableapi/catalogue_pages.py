"""The catalogue pages of the administration: addresses, form data, messages."""

import re
from typing import Any

from tableapi.models import Table


def page(model: str, record: Any = None, name: str = "change") -> str:
    return f"/admin/tableapi/{model}/" + (f"{record.pk}/{name}/" if record else "add/")


def rows(prefix: str, *new: dict[str, Any], stored: int = 0) -> dict[str, Any]:
    sent = {f"{prefix}-TOTAL_FORMS": len(new), f"{prefix}-INITIAL_FORMS": stored}
    return sent | {f"{prefix}-{number}-{name}": value for number, row in enumerate(new) for name, value in row.items()}


def column_form(table: Table, name: str, **values: Any) -> dict[str, Any]:
    usual = {"table": table.pk, "name": name, "label": "It", "type": "string", "default_value": ""}
    return rows("choices") | usual | values


def said(response: Any) -> str:
    """What the page after it says, be it a form with errors or a message."""
    text = response.content.decode()
    assert response.status_code == 200, response.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
