"""Permissions on collections. All access to collections goes through this module.

    readers   have one of its reader roles                            search, read, list
    writers   have one of its writer roles or, if it has none,        the same; load and delete documents
              collection_admin
    managers  admin, and writers who also have collection_admin       the same; settings, roles, delete the collection

"A collection the caller may not read does not exist for it": every lookup filters by permission.
"""

from collections.abc import Sequence
from typing import Any, Literal

from django.contrib.postgres.expressions import ArraySubquery
from django.db import IntegrityError, transaction
from django.db.models import Case, Q, QuerySet, Value, When

from accounts.models import Role, User
from accounts.roles import ADMIN, COLLECTION_ADMIN
from collections_app.models import Collection
from collections_app.models.collections import MAX_NAME_LENGTH, check_visible_characters, lookup_name, normalize_name
from collections_app.vectors import model_choice
from system.errors import AccessDenied, Conflict, NotFound, ServiceError, combine_errors

Right = Literal["read", "write", "manage"]
REFUSAL_MESSAGES = {
    "write": "You are not allowed to change documents in this collection.",
    "manage": "You are not allowed to change this collection.",
}


def caller(request: Any) -> User:
    """Returns the signed-in user of a request. Use it only in views that refuse anonymous callers."""
    user: User = request.user
    return user


def readable_collections(user: User) -> QuerySet[Collection]:
    """Returns the collections that the user can read, annotated for `rights` with whether the user can write."""
    collections = Collection.objects.filter(deleted_at__isnull=True).select_related("space", "next_space")
    collections = collections.annotate(rights_user_id=Value(user.pk))
    if user.has_role(ADMIN):
        return collections.annotate(is_writer=Value(True))
    roles = ArraySubquery(Role.objects.filter(name__in=user.role_names).values("sys_id"))
    is_writer = Q(writer_roles__overlap=roles)
    if user.has_role(COLLECTION_ADMIN):
        is_writer |= Q(writer_roles=[])
    return collections.filter(is_writer | Q(reader_roles__overlap=roles)).annotate(
        is_writer=Case(When(is_writer, then=Value(True)), default=Value(False))
    )


def managed_collections(user: User) -> QuerySet[Collection]:
    collections = readable_collections(user)
    return collections.filter(is_writer=True) if may_create_collections(user) else collections.none()  # type: ignore[misc]


def rights(user: User, collection: Collection) -> frozenset[str]:
    """Returns the user's rights. Queries them if the collection does not come from `readable_collections(user)`."""
    annotations = vars(collection)
    if annotations.get("rights_user_id") != user.pk:
        annotated_collection = readable_collections(user).filter(pk=collection.pk).first()
        return rights(user, annotated_collection) if annotated_collection else frozenset()
    if not annotations["is_writer"]:
        return frozenset({"read"})
    return frozenset({"read", "write", "manage"} if may_create_collections(user) else {"read", "write"})


def may_create_collections(user: User) -> bool:
    return user.has_role(COLLECTION_ADMIN)


def open_collection(user: User, name: str, right: Right) -> Collection:
    """Returns a collection; raises NotFound if the user cannot read it, AccessDenied if only the right is missing."""
    collection = readable_collections(user).filter(name=lookup_name(name)).first()
    return _require_right(user, collection, right, _not_found_error(name, "collection_name"))


def open_collection_by_id(user: User, sys_id: str, right: Right) -> Collection:
    collection = readable_collections(user).filter(pk=sys_id).first()
    return _require_right(user, collection, right, NotFound("The collection does not exist."))


def open_collections(user: User, names: Sequence[str]) -> list[Collection]:
    """Returns the distinct collections with these names; raises NotFound if the user cannot read one of them."""
    stored_names = {name: lookup_name(name) for name in names}
    readable = readable_collections(user).filter(name__in=list(stored_names.values()))
    collections = {collection.name: collection for collection in readable}
    missing_names = [name for name, stored_name in stored_names.items() if stored_name not in collections]
    if missing_names:
        raise combine_errors([_not_found_error(name, "collection_names") for name in missing_names])
    return [collections[stored_name] for stored_name in dict.fromkeys(stored_names.values())]


def find_load_target(user: User, name: str) -> Collection | None:
    """Returns the collection to load into, or None if it does not exist and the user may create it."""
    try:
        return open_collection(user, name, "write")
    except NotFound:
        if not may_create_collections(user):
            raise
        return None


def open_or_create_collection(user: User, name: str) -> Collection:
    """Like `find_load_target`, but creates a missing collection."""
    if existing_collection := find_load_target(user, name):
        return existing_collection
    try:
        return create_collection(user, Collection(name=normalize_name(name)))
    except Conflict as conflict:
        # Either a concurrent load created the collection, or it exists and this user cannot read it.
        collection = readable_collections(user).filter(name=normalize_name(name)).first()
        return _require_right(user, collection, "write", conflict)


def create_collection(user: User, collection: Collection) -> Collection:
    """Chosen: users who may create collections can learn that a name is taken, since names are unique."""
    if not may_create_collections(user):
        raise AccessDenied("You are not allowed to create collections.")
    check_visible_characters(collection.name)
    collection.space = model_choice.target_space(collection)
    try:
        with transaction.atomic():
            collection.save()
    except IntegrityError:
        raise Conflict("This name is already taken.", code="name_taken", field="collection_name") from None
    return collection


def _require_right(user: User, collection: Collection | None, right: Right, missing_error: ServiceError) -> Collection:
    if collection is None:
        raise missing_error
    if right not in rights(user, collection):
        raise AccessDenied(REFUSAL_MESSAGES[right])
    return collection


def _not_found_error(name: str, field: str) -> NotFound:
    return NotFound(f'There is no collection named "{name[:MAX_NAME_LENGTH]}".', field=field)
