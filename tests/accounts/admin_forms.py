"""The form data that a browser sends to the user and role pages of the administration."""

from typing import Any

from django.test import Client

from accounts.models import Role, User, UserGroup, UserRole


def user_page_path(*path: str) -> str:
    return "/".join(["/admin/accounts/user", *path, ""])


def inline_form(prefix: str, initial_rows: Any, new_rows: list[dict[str, str]]) -> dict[str, str]:
    """The form data of an inline: the stored rows, then the new ones."""
    rows = [*initial_rows, *new_rows]
    form = {f"{prefix}-TOTAL_FORMS": str(len(rows)), f"{prefix}-INITIAL_FORMS": str(len(initial_rows))}
    for number, row in enumerate(rows):
        form |= {f"{prefix}-{number}-{name}": value for name, value in row.items()}
    return form


def stored_rows(records: Any, deleted_ids: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """The stored rows as the page shows them; rows in `deleted_ids` are marked for deletion."""
    return [
        {"sys_id": record.pk, "user": record.user_id} | ({"DELETE": "on"} if record.pk in deleted_ids else {})
        for record in records.order_by("sys_id")
    ]


def submit_user_form(
    browser: Client,
    user: User,
    *,
    granted_roles: tuple[str, ...] = (),
    revoked_roles: tuple[str, ...] = (),
    **columns: Any,
) -> Any:
    """Submits a user's page with changed columns and with the names of roles to grant and revoke."""
    grants = UserRole.objects.filter(user=user)
    revoked_ids = tuple(grants.filter(role__name__in=revoked_roles).values_list("sys_id", flat=True))
    new_grants = [{"role": Role.objects.get(name=name).pk, "user": user.pk} for name in granted_roles]
    user = user.refreshed()
    form = {name: getattr(user, name) for name in ("login", "first_name", "last_name", "email", "phone")}
    form |= {"active": "on"} if user.active else {}
    form |= inline_form("grants", stored_rows(grants, revoked_ids), new_grants)
    form |= inline_form("memberships", stored_rows(UserGroup.objects.filter(user=user)), [])
    form |= columns
    return browser.post(
        user_page_path(user.pk, "change"), {name: value for name, value in form.items() if value != "off"}
    )
