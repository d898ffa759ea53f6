"""The form data that a browser sends to the user and role pages of the administration."""

from typing import Any

from django.test import Client

from accounts.models import Role, User, UserGroup, UserRole


def user_page_path(*path: str) -> str:
    return "/".join(["/admin/accounts/user", *path, ""])


def inline_rows(prefix: str, existing: Any, new: list[dict[str, str]]) -> dict[str, str]:
    """The form data of an inline: the stored rows, then the new ones."""
    form = {f"{prefix}-TOTAL_FORMS": str(len(existing) + len(new)), f"{prefix}-INITIAL_FORMS": str(len(existing))}
    for number, values in enumerate([*existing, *new]):
        form |= {f"{prefix}-{number}-{name}": value for name, value in values.items()}
    return form


def existing_rows(links: Any, deleted_ids: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """The stored rows as the page shows them; rows in `deleted_ids` are marked for deletion."""
    return [
        {"sys_id": link.pk, "user": link.user_id} | ({"DELETE": "on"} if link.pk in deleted_ids else {})
        for link in links.order_by("sys_id")
    ]


def submit_user_form(
    browser: Client,
    user: User,
    *,
    granted_roles: tuple[str, ...] = (),
    revoked_roles: tuple[str, ...] = (),
    **columns: Any,
) -> Any:
    """Submits the page of a user with changed columns, and the names of roles to grant and revoke."""
    grants = UserRole.objects.filter(user=user)
    revoked_ids = tuple(grants.filter(role__name__in=revoked_roles).values_list("sys_id", flat=True))
    new_grants = [{"role": Role.objects.get(name=name).pk, "user": user.pk} for name in granted_roles]
    user = user.refreshed()
    form = {name: getattr(user, name) for name in ("login", "first_name", "last_name", "email", "phone")}
    form |= {"active": "on"} if user.active else {}
    form |= inline_rows("grants", existing_rows(grants, revoked_ids), new_grants)
    form |= inline_rows("memberships", existing_rows(UserGroup.objects.filter(user=user)), [])
    form |= columns
    return browser.post(
        user_page_path(user.pk, "change"), {name: value for name, value in form.items() if value != "off"}
    )
