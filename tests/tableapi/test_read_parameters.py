"""Unknown parameters are ignored; known parameters must be valid and given only once."""

from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.world import api, column_values, error_of

pytestmark = pytest.mark.django_db


def test_unknown_parameters_are_ignored(note_ids: list[str], bob: User):
    response = api(bob).get("note?offset=1&sysparm_input_display_value=1&lang=de", offset=4, limit=2)
    assert column_values(response, "name") == ["n00", "n01"]
    assert not [name for name in response.headers if name.startswith("X-Ignored")]


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("sysparm_limit=0", "sysparm_limit", "sysparm_limit must be a whole number from 1 to 10,000."),
        ("sysparm_limit=1&sysparm_limit=2", "sysparm_limit", "sysparm_limit was given more than once."),
        ("sysparm_count=about", "sysparm_count", "sysparm_count must be one of exact, estimated."),
        ("sysparm_display_value=x", "sysparm_display_value", "sysparm_display_value must be 0, 1 or all."),
        ("sysparm_cursor=x&sysparm_page=2", "sysparm_cursor", "Send sysparm_cursor or sysparm_page, not both."),
        ("sysparm_cursor=x", "sysparm_cursor", "The cursor is not valid for this list. Start again without it."),
        ("sysparm_view=%00", "sysparm_view", "sysparm_view contains a character that cannot be stored."),
    ],
)
def test_invalid_parameter_is_refused(note_ids: list[str], bob: User, query: str, field: str, message: Any):
    response = api(bob).get(f"note?{query}")
    assert error_of(response) == (400, "invalid_parameter", field)
    assert response.json()["errors"][0]["message"] == message
