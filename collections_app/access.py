"""Permissions of collections; all access to collections goes through this module.

    readers   who holds one of its reader roles                       search, read, list
    writers   who holds one of its writer roles; while it has none,   the same, load, delete documents
              collection_admin
    managers  admin, and a writer who also holds collection_admin     the same, settings, roles, delete the collection

"A collection the caller may not read does not exist for it": it is looked for by the statement that would find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from django.contrib.postgres.expressions import ArraySubquery
from django.db import IntegrityError, transaction
from django.db.models import Case, Q, QuerySet, Value, When

from accounts.models import Role, User
from accounts.roles import ADMIN, COLLECTION_ADMIN
from collections_app import embed
from collections_app.models import Collection
from collections_app.models.collections import LONGEST_NAME, check_visible, known_form, well_named
from system.errors import AccessDenied, BadRequest, Conflict, NotFound, ServiceError, together

Right = Literal["read", "write", "manage"]
REFUSALS = {
    "write": "You are not allowed to change documents in this collection.",
    "manage": "You are not allowed to change this collection.",
}


def caller(request: Any) -> User:
    """Who is asking; only for views that refuse callers without credentials."""
    user: User = request.user
    return user


def readable(user: User) -> QuerySet[Collection]:
    """The collections that are there for this caller; each knows whether the caller writes in it, for `rights`."""
    found = Collection.objects.filter(deleted_at__isnull=True).select_related("space", "next_space")
    found = found.annotate(seen_by=Value(user.pk))
    if user.has_role(ADMIN):
        return found.annotate(is_writer=Value(True))
    held = ArraySubquery(Role.objects.filter(name__in=user.role_names).values("sys_id"))
    writes = Q(writer_roles__overlap=held)
    if user.has_role(COLLECTION_ADMIN):
        writes |= Q(writer_roles=[])
    return found.filter(writes | Q(reader_roles__overlap=held)).annotate(
        is_writer=Case(When(writes, then=Value(True)), default=Value(False))
    )


def rights(user: User, collection: Collection) -> frozenset[str]:
    """What this caller may do with a collection, which need not have come from here."""
    known = vars(collection)
    if known.get("seen_by") != user.pk:
        found = readable(user).filter(pk=collection.pk).first()
        return rights(user, found) if found else frozenset()
    if not known["is_writer"]:
        return frozenset({"read"})
    return frozenset({"read", "write", "manage"} if may_make(user) else {"read", "write"})


def may_make(user: User) -> bool:
    return user.has_role(COLLECTION_ADMIN)


def open_collection(user: User, name: str, right: Right) -> Collection:
    """The collection of this name, for this; 404 where it cannot be read, 403 where only the right is missing."""
    found = readable(user).filter(name=known_form(name)).first()
    return _with_right(user, found, right, _no_such(name, "collection_name"))


def open_by_id(user: User, sys_id: str, right: Right) -> Collection:
    found = readable(user).filter(pk=sys_id).first()
    return _with_right(user, found, right, NotFound("The collection does not exist."))


def open_all(user: User, names: Sequence[str]) -> list[Collection]:
    """For reading, in the order of the names; twice the same counts once. One that is missing refuses all."""
    known = {name: known_form(name) for name in names}
    found = {each.name: each for each in readable(user).filter(name__in=list(known.values()))}
    missing = [name for name, form in known.items() if form not in found]
    if missing:
        raise together([_no_such(name, "collection_names") for name in missing])
    return [found[form] for form in dict.fromkeys(known.values())]


def open_or_make(user: User, name: str) -> Collection:
    """For a load: a missing collection is made, if the caller may. Everybody else is told that it is missing."""
    try:
        return open_collection(user, name, "write")
    except NotFound:
        if not may_make(user):
            raise
    try:
        return make(user, Collection(name=checked_name(name)))
    except Conflict as taken:
        # By another load of this moment, or it was there all the time, for others.
        found = readable(user).filter(name=checked_name(name)).first()
        return _with_right(user, found, "write", taken)


def make(user: User, collection: Collection) -> Collection:
    """Save a new collection.

    Chosen: who may make collections can learn that a name is taken, since there cannot be a second one of it.
    """
    if not may_make(user):
        raise AccessDenied("You are not allowed to create collections.")
    check_new_name(collection.name)
    collection.space = embed.default_space()
    try:
        with transaction.atomic():
            collection.save()
    except IntegrityError:
        raise Conflict("This name is already taken.", code="name_taken", field="collection_name") from None
    return collection


def checked_name(name: str) -> str:
    """A name that a collection can have, in the form that is stored."""
    try:
        return well_named(name)
    except ValueError as error:
        raise BadRequest(str(error), code="invalid_parameter", field="collection_name") from None


def check_new_name(name: str) -> None:
    """Nobody would see that it is another name than one without these characters. Collections that have such a name
    from before keep it."""
    try:
        check_visible(name)
    except ValueError as error:
        raise BadRequest(str(error), code="invalid_parameter", field="collection_name") from None


def _with_right(user: User, found: Collection | None, right: Right, missing: ServiceError) -> Collection:
    if found is None:
        raise missing
    if right not in rights(user, found):
        raise AccessDenied(REFUSALS[right])
    return found


def _no_such(name: str, field: str) -> NotFound:
    return NotFound(f"There is no collection {name[:LONGEST_NAME]}.", field=field)
