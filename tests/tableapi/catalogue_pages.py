"""The catalogue pages of the administration: paths, form data and text."""

import re
from typing import Any

from tableapi.models import Table


def page_path(model: str, record: Any = None, action: str = "change") -> str:
    return f"/admin/tableapi/{model}/" + (f"{record.pk}/{action}/" if record else "add/")


def inline_rows(prefix: str, *new_rows: dict[str, Any], stored_count: int = 0) -> dict[str, Any]:
    form_data = {f"{prefix}-TOTAL_FORMS": len(new_rows), f"{prefix}-INITIAL_FORMS": stored_count}
    return form_data | {
        f"{prefix}-{number}-{name}": value for number, row in enumerate(new_rows) for name, value in row.items()
    }


def column_form_data(table: Table, name: str, **values: Any) -> dict[str, Any]:
    defaults = {"table": table.pk, "name": name, "label": "It", "type": "string", "default_value": ""}
    return inline_rows("choices") | defaults | values


def page_text(response: Any) -> str:
    """The text of a page, without tags."""
    text = response.content.decode()
    assert response.status_code == 200, response.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
