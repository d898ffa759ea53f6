"""An empty list says which values of its query no record can have: labels of choices, names in place of ids."""

import pytest

from accounts import demo as people
from accounts.models import User
from tableapi.setup import demo_records
from tests.conftest import PASSWORD
from tests.tableapi.world import api, data

pytestmark = pytest.mark.django_db
HEADER = "X-Doubtful-Conditions"


@pytest.fixture(autouse=True)
def tasks(db: None) -> None:
    people.make(lambda: PASSWORD)
    demo_records.make()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state=In progress", "state=In%20progress"),
        ("stateIN1,New,9^short_description=nothing", "stateINNew,stateIN9"),
        ("stateNOT IN1,New^number=x", "stateNOT%20INNew"),
        ("state!=New^number=x^state!={In progress}", "state!=New,state!=In%20progress"),
        ("number=x^followers_listHASx", "followers_listHASx"),
        ("company=Example, Inc", "company=Example%2C%20Inc"),
        ("(state=1^ORassigned_user.company=Größe)^short_description=nothing", "assigned_user.company=Gr%C3%B6%C3%9Fe"),
        ("state={a\r\nSet-Cookie: b}", "state=a%0D%0ASet-Cookie%3A%20b"),
    ],
)
def test_an_empty_list_names_what_is_doubtful(alice: User, query: str, said: str):
    answer = api(alice).get("task", query=query)
    assert (data(answer), answer.get(HEADER)) == ([], said)


@pytest.mark.parametrize(
    "query",
    [
        "state=1^short_description=nothing",
        "state=^short_description=nothing",
        "stateLIKEnothing",
        "short_description=nothing",
        "assigned_userDYNAMICme^short_description=nothing",
        "company=171612345600000011",
        "company=62826bf03710200044e0bfc8bcbe5df1",
    ],
)
def test_what_may_be_is_not_doubted(alice: User, query: str):
    answer = api(alice).get("task", query=query)
    assert data(answer) == [] and HEADER not in answer


def test_records_that_are_there_speak_for_themselves(alice: User):
    answer = api(alice).get("task", query="state=1^ORstate=In progress")
    assert data(answer) and HEADER not in answer
    assert HEADER not in api(alice).get("task", query="state=1^ORstate=In progress", page=1000)


def test_it_is_short(alice: User):
    many = ",".join(f"{number}-{'x' * 200}" for number in range(30))
    said = api(alice).get("task", query=f"stateIN{many}")[HEADER]
    assert len(said.split(",")) == 20 and max(map(len, said.split(","))) == len("stateIN") + 100
