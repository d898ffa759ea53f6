"""Parameters that an operation does not know are ignored, and the answer says which."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.openapi.components import OF_LIST, OF_WRITE, PARAMETERS, SHOWN
from tableapi.query import parameters
from tests.tableapi.world import api, column, data, failed

pytestmark = pytest.mark.django_db
HEADER = "X-Ignored-Parameters"


def test_a_list_says_which(notes: list[str], bob: User):
    answer = api(bob).get("note?offset=1&sysparm_input_display_value=1&lang=de", offset=4, limit=2)
    assert answer[HEADER] == "offset,sysparm_input_display_value,lang,sysparm_offset"
    assert column(answer, "name") == ["n00", "n01"]


def test_so_does_a_record_and_what_is_answered_to_a_write(notes: list[str], bob: User):
    path = f"note/{notes[0]}"
    answers = [
        api(bob).get(path, limit=1),
        api(bob).get(path, limit=1, headers={"If-None-Match": "*"}),
        api(bob).head(path, limit=1),
        api(bob).put(path, {"name": "a"}, limit=1, input_display_value=0),
        api(bob).patch(path, {"name": "b"}, limit=1),
        api(bob).delete(f"note/{notes[1]}", limit=1),
        *(api(bob).post("note", {"name": "c"}, limit=1, headers={"Idempotency-Key": "one"}) for _ in range(2)),
    ]
    assert [answer.status_code for answer in answers] == [200, 304, 200, 200, 200, 200, 201, 201]
    assert {answer.get(HEADER) for answer in answers} == {"sysparm_limit"}


def test_without_any_there_is_no_such_header(notes: list[str], bob: User):
    shown = {"display_value": 1, "exclude_reference_link": 1, "fields": "name"}
    listed = {"query": "name!=x", "limit": 5, "page": 1, "count": "exact", "query_category": "x"}
    answers = [
        api(bob).get("note"),
        api(bob).get("note", **shown, **listed),
        api(bob).get(f"note/{notes[0]}", **shown),
        api(bob).patch(f"note/{notes[0]}", {}, **shown, input_display_value=1),
        api(bob).delete(f"note/{notes[0]}"),
    ]
    assert all(data(answer) and HEADER not in answer for answer in answers)


def test_only_names_that_can_be_names_and_not_many(notes: list[str], bob: User):
    strange = "a%0d%0aSet-Cookie:%20b=1&%C3%A4=1&a,b=1&=1&" + "x" * 256 + "=1"
    assert HEADER not in api(bob).get(f"note?{strange}")
    assert api(bob).get(f"note?{strange}&Lang.x_1=de")[HEADER] == "Lang.x_1"
    many = [f"p{number}" for number in range(30)]
    assert api(bob).get("note?" + "&".join(f"{name}=1" for name in many))[HEADER] == ",".join(many[:20])


def test_a_known_one_that_is_wrong_is_refused_as_ever(notes: list[str], bob: User):
    assert failed(api(bob).get("note", offset=1, limit=0)) == (400, "invalid_parameter", "sysparm_limit")


@pytest.mark.parametrize(
    ("known", "described"),
    [(parameters.OF_LISTS, OF_LIST), (parameters.OF_RECORDS, SHOWN), (parameters.OF_WRITES, OF_WRITE)],
)
def test_what_is_known_is_what_is_described(known: Any, described: Any):
    found = [PARAMETERS[each] for each in described]
    assert known == {each["name"] for each in found if each["in"] == "query"}
