"""Admin pages of the accounts app, with their sidebar links, dashboard tile and start page entries."""

from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.urls import reverse

from accounts.admin import access_keys, roles, users  # noqa: F401  (each registers its pages)
from accounts.authentication import login_attempts
from accounts.models import User, UserRole
from system.admin_site import dashboard
from system.http import start_page

dashboard.register_links(
    "People and access",
    10,
    dashboard.Link("Users", "person", "accounts.User"),
    dashboard.Link("Roles", "badge", "accounts.Role"),
    dashboard.Link("Groups", "groups", "accounts.Group"),
    dashboard.Link("Companies", "apartment", "accounts.Company"),
    dashboard.Link("Access keys", "key", "accounts.AccessKey"),
)


@dashboard.register_tile(order=10)
def people_tile(request: HttpRequest) -> dashboard.Tile | None:
    if not request.user.is_superuser:
        return None
    active_count, inactive_count = User.objects.filter(active=True).count(), User.objects.filter(active=False).count()
    inactive_text = f", {inactive_count} inactive" if inactive_count else ""
    text = f"active user{pluralize(active_count)}{inactive_text}."
    if locked_count := login_attempts.count_locked_logins():
        text += f" {locked_count} login{pluralize(locked_count, ' is,s are')} locked out."
    return dashboard.Tile("People", str(active_count), text, reverse("admin:accounts_user_changelist"), "person")


@dashboard.register_step(order=20, app="accounts")
def people_step() -> dashboard.Step:
    has_colleagues = User.objects.filter(active=True)[1:2].exists()
    return dashboard.Step("Add the people who work with you", reverse("admin:accounts_user_add"), has_colleagues)


@dashboard.register_step(order=30, app="accounts")
def roles_step() -> dashboard.Step:
    """Done if anybody has a role other than the first administrator."""
    return dashboard.Step(
        "Give them roles", reverse("admin:accounts_role_changelist"), UserRole.objects.all()[1:2].exists()
    )


@start_page.register_entry
def administration_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    if not getattr(request.user, "is_staff", False):
        return None
    return start_page.StartPageEntry(
        "Administration", "Manage users, single sign-on, tables and collections.", reverse("admin:index")
    )


@start_page.register_entry
def account_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    has_password = isinstance(request.user, User) and request.user.has_usable_password()
    description = f"Manage your profile, {'password, ' if has_password else ''}access keys and sessions."
    return start_page.StartPageEntry("Your account", description, reverse("account"))


@start_page.register_entry
def api_docs_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    return start_page.StartPageEntry("API", "Read the API reference and try out requests.", reverse("docs"))
