"""Permissions on collections, as decided by `collections_app.access`."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Role, User
from collections_app import access
from collections_app.models import Collection
from system.errors import AccessDenied, BadRequest, Conflict, NotFound
from tests.collections_app.builders import make_collection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
ALL_RIGHTS = frozenset({"read", "write", "manage"})
WRITER_RIGHTS = frozenset({"read", "write"})
READER_RIGHTS = frozenset({"read"})
NO_RIGHTS: frozenset[str] = frozenset()


def role_ids(*names: str) -> list[str]:
    return [Role.objects.get_or_create(name=name)[0].pk for name in names]


def make_collection_with_roles(readers: tuple[str, ...], writers: tuple[str, ...]) -> Collection:
    return make_collection("manuals", reader_roles=role_ids(*readers), writer_roles=role_ids(*writers))


@pytest.mark.parametrize(
    ("roles", "readers", "writers", "expected_rights"),
    [
        ((), (), (), NO_RIGHTS),
        (("admin",), (), (), ALL_RIGHTS),
        (("admin",), ("crew",), ("crew",), ALL_RIGHTS),
        (("collection_admin",), (), (), ALL_RIGHTS),
        # "Until set, collection_admin writes and nobody else reads."
        (("collection_admin",), ("crew",), (), ALL_RIGHTS),
        (("collection_admin",), (), ("crew",), NO_RIGHTS),
        (("collection_admin",), ("collection_admin",), ("crew",), READER_RIGHTS),
        (("collection_admin", "crew"), (), ("crew",), ALL_RIGHTS),
        (("crew",), ("crew",), (), READER_RIGHTS),
        (("crew",), (), ("crew",), WRITER_RIGHTS),
        (("crew",), ("crew",), ("crew",), WRITER_RIGHTS),
        (("crew",), ("other",), ("others",), NO_RIGHTS),
        (("itil",), ("crew", "itil"), ("crew",), READER_RIGHTS),
    ],
)
def test_permissions_depend_on_roles(roles: Any, readers: Any, writers: Any, expected_rights: frozenset[str]):
    collection = make_collection_with_roles(readers, writers)
    role_ids(*roles)
    user = make_user("dora", *roles)

    assert access.rights(user, collection) == expected_rights
    readable_collection = access.readable_collections(user).filter(pk=collection.pk).first()
    assert (readable_collection is not None) == ("read" in expected_rights)
    if readable_collection is not None:
        assert access.rights(user, readable_collection) == expected_rights


def test_role_that_contains_a_reader_role_reads():
    make_collection_with_roles(("crew",), ())
    chief_role = Role.objects.create(name="chief", contains=role_ids("crew"))

    assert access.open_collection(make_user("dora", chief_role.name), "manuals", "read")


def test_deleted_role_grants_nothing(bob: User, carl: User):
    """Write access does not return to collection_admin, because the list is not empty."""
    collection = make_collection_with_roles(("crew",), ("crew",))
    Role.objects.get(name="crew").delete()

    assert access.rights(bob, collection) == access.rights(carl, collection) == NO_RIGHTS


@pytest.mark.parametrize("right", ["read", "write", "manage"])
def test_unreadable_collection_is_404_for_every_action(bob: User, right: Any):
    make_collection("manuals")

    with pytest.raises(NotFound) as hidden_exc_info:
        access.open_collection(bob, "manuals", right)
    Collection.objects.all().delete()
    with pytest.raises(NotFound) as missing_exc_info:
        access.open_collection(bob, "manuals", right)
    assert hidden_exc_info.value.as_items() == missing_exc_info.value.as_items()  # C02


def test_readable_collection_is_403_for_forbidden_actions():
    collection = make_collection_with_roles(("crew",), ())
    dora = make_user("dora", "crew")

    for right in ("write", "manage"):
        with pytest.raises(AccessDenied):
            access.open_collection(dora, "manuals", right)
        with pytest.raises(AccessDenied):
            access.open_collection_by_id(dora, collection.pk, right)


def test_deleted_collection_is_not_found_by_anybody(alice: User):
    make_collection("manuals").mark_deleted()

    with pytest.raises(NotFound):
        access.open_collection(alice, "manuals", "read")
    assert not access.readable_collections(alice).exists()


@pytest.mark.parametrize("name", ["", " ", "a" * 201, "a\x00b", "..", "a/b", "Manuals", "\ud800"])
def test_other_names_do_not_find_the_collection(alice: User, name: str):  # C11
    make_collection("manuals")

    with pytest.raises(NotFound):
        access.open_collection(alice, name, "read")
    with pytest.raises(NotFound):
        access.open_collections(alice, ["manuals", name])


def test_composed_and_decomposed_names_are_treated_as_equal(alice: User):  # C11
    collection = make_collection("Caf\u00e9")

    assert access.open_collection(alice, "Cafe\u0301", "read") == collection
    assert access.open_collections(alice, ["Cafe\u0301", "Caf\u00e9"]) == [collection]


def test_several_collections_are_in_the_requested_order(alice: User):
    collections = [make_collection(name) for name in ("a", "b", "c")]

    assert access.open_collections(alice, ["c", "a", "c", "b"]) == [collections[2], collections[0], collections[1]]


def test_missing_collection_is_reported_by_name(bob: User):  # C03
    make_collection("open", reader_roles=role_ids("crew"))
    make_collection("hidden")
    dora = make_user("dora", "crew")

    with pytest.raises(NotFound) as exc_info:
        access.open_collections(dora, ["open", "hidden", "missing"])
    errors = [(error["message"], error["field"]) for error in exc_info.value.as_items()]
    assert errors == [
        ('There is no collection named "hidden".', "collection_names"),
        ('There is no collection named "missing".', "collection_names"),
    ]


@pytest.mark.parametrize("name", ["hidden", "missing", "\x00"])
def test_hidden_and_missing_collections_run_equal_queries(name: str):  # C02, C52
    make_collection("hidden")
    role_ids("crew")
    dora = make_user("dora", "crew")
    dora.role_names  # noqa: B018  (loads the roles)

    with CaptureQueriesContext(connection) as queries, pytest.raises(NotFound):
        access.open_collection(dora, name, "write")
    assert len(queries) == 1 and "is_writer" in queries[0]["sql"]


def test_load_creates_a_missing_collection_if_permitted(carl: User, bob: User):
    with pytest.raises(NotFound) as exc_info:
        access.open_or_create_collection(bob, "new")
    assert exc_info.value.field == "collection_name"
    collection = access.open_or_create_collection(carl, "Cafe\u0301")

    assert collection.name == "Caf\u00e9" and collection.space_id and access.rights(carl, collection) == ALL_RIGHTS
    assert access.open_or_create_collection(carl, "Caf\u00e9") == collection


def test_load_into_a_readable_collection_is_denied():
    make_collection_with_roles(("crew",), ())

    with pytest.raises(AccessDenied):
        access.open_or_create_collection(make_user("dora", "crew"), "manuals")
    assert Collection.objects.count() == 1


def test_name_of_a_hidden_collection_is_reported_as_taken(carl: User):
    make_collection_with_roles((), ("crew",))

    with pytest.raises(Conflict) as exc_info:
        access.open_or_create_collection(carl, "manuals")
    assert exc_info.value.code == "name_taken"


def test_name_of_a_deleted_collection_is_free(carl: User):
    make_collection("manuals").mark_deleted()

    assert access.open_or_create_collection(carl, "manuals").deleted_at is None


@pytest.mark.parametrize("name", ["", "   ", "a" * 201, "a\nb", "a\x00b"])
def test_invalid_collection_names_are_refused(carl: User, name: str):  # C11
    with pytest.raises(BadRequest) as exc_info:
        access.open_or_create_collection(carl, name)
    assert exc_info.value.field == "collection_name"


def test_creation_requires_the_role(bob: User):
    with pytest.raises(AccessDenied):
        access.create_collection(bob, Collection(name="new"))


def test_permissions_are_not_shared_between_users(carl: User, bob: User):
    make_collection_with_roles((), ())
    collection = access.open_collection(carl, "manuals", "manage")

    assert access.rights(bob, collection) == NO_RIGHTS


def test_scoped_key_has_only_its_roles(carl: User):
    collection = make_collection_with_roles((), ())
    carl.limit_to_roles(role_ids("itil"))

    assert access.rights(carl, collection) == NO_RIGHTS
