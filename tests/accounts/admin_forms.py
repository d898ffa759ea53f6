"""The form data that a browser sends to the user and role pages of the administration."""

from typing import Any

from django.test import Client

from accounts.models import Role, User, UserGroup, UserRole


def users(*path: str) -> str:
    return "/".join(["/admin/accounts/user", *path, ""])


def inline(prefix: str, existing: Any, new: list[dict[str, str]]) -> dict[str, str]:
    """The rows of an inline: those that are stored, then new ones."""
    sent = {f"{prefix}-TOTAL_FORMS": str(len(existing) + len(new)), f"{prefix}-INITIAL_FORMS": str(len(existing))}
    for number, values in enumerate([*existing, *new]):
        sent |= {f"{prefix}-{number}-{name}": value for name, value in values.items()}
    return sent


def stored(links: Any, take: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """Rows as the page shows them; those whose id is in `take` with the box to delete them ticked."""
    return [
        {"sys_id": link.pk, "user": link.user_id} | ({"DELETE": "on"} if link.pk in take else {})
        for link in links.order_by("sys_id")
    ]


def change(
    browser: Client, user: User, *, give: tuple[str, ...] = (), take: tuple[str, ...] = (), **columns: Any
) -> Any:
    """Send the page of a user with changed columns, roles given (by name) and taken (by name)."""
    grants = UserRole.objects.filter(user=user)
    result = tuple(grants.filter(role__name__in=take).values_list("sys_id", flat=True))
    given = [{"role": Role.objects.get(name=name).pk, "user": user.pk} for name in give]
    user = user.refreshed()
    sent = {name: getattr(user, name) for name in ("login", "first_name", "last_name", "email", "phone")}
    sent |= {"active": "on"} if user.active else {}
    sent |= inline("grants", stored(grants, result), given)
    sent |= inline("memberships", stored(UserGroup.objects.filter(user=user)), [])
    sent |= columns
    return browser.post(users(user.pk, "change"), {name: value for name, value in sent.items() if value != "off"})
