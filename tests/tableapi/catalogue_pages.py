"""The catalogue pages of the administration: paths and text."""

import re
from typing import Any


def page_path(model: str, record: Any = None, action: str = "change") -> str:
    return f"/admin/tableapi/{model}/" + (f"{record.pk}/{action}/" if record else "add/")


def page_text(response: Any) -> str:
    """The text of a page, without tags."""
    text = response.content.decode()
    assert response.status_code == 200, response.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
