"""Access to the administration: who can open it, and what each role can do on every registered page."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, reverse

from accounts.models import Company, FailedAttempts, Group, Role, Session, User, UserGroup, UserRole
from accounts.roles import AREA_ROLES
from tableapi.models import Table
from tests.support.users import make_user

CAST = ("alice", "sonja", "carl", "bob", "ivan", "visitor")
ROLES = {"alice": "admin", "sonja": "sso_admin", "carl": "collection_admin", "ivan": "itil"}
ADMIN_LOGINS = ("alice", "sonja", "carl")
ADMIN_MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
MODEL_LABELS = [model._meta.label for model in ADMIN_MODELS]
# Pages of the product replace the forms of these models. The addresses of the forms lead there.
REPLACED_FORMS = (
    "collections_app.Collection",
    "tableapi.Column",
    "tableapi.Rule",
    "tableapi.SetRule",
    "tableapi.Table",
    "tableapi.View",
)
# Actions that no role permits.
FORBIDDEN_ACTIONS: dict[str, set[str]] = {
    "system.Property": {"add", "delete"},
    "system.DeletionLogEntry": {"add", "change", "delete"},
    "system.UserViewUse": {"add", "change", "delete"},
    "django_celery_beat.PeriodicTask": {"add", "delete"},
    "tableapi.DeferredRecord": {"add", "change", "delete"},
    "tableapi.WebhookDelivery": {"add", "change", "delete"},
    "collections_app.Document": {"add", "change", "delete"},
    "collections_app.Source": {"add", "change", "delete"},
    "sso.IdpCertificate": {"add", "change"},
    "sso.IdentityLink": {"add", "change"},
    "sso.SignIn": {"add", "change", "delete"},
    **{label: {"add", "change", "delete"} for label in REPLACED_FORMS},
}


@pytest.fixture
def browsers(db: None) -> dict[str, Client]:
    browsers_by_login = {}
    for login in CAST:
        browsers_by_login[login] = Client(headers={"Accept": "text/html"})
        if login != "visitor":
            browsers_by_login[login].force_login(make_user(login, *([ROLES[login]] if login in ROLES else [])))
    return browsers_by_login


def is_permitted(login: str, app_label: str) -> bool:
    return ROLES.get(login, "no role") in ("admin", AREA_ROLES.get(app_label))


def page_path(model: Any, page: str, *arguments: str) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def is_refused(response: Any) -> bool:
    """Forbidden, or redirected to the sign-in page, which refuses a signed-in user."""
    return response.status_code == 403 or (response.status_code == 302 and "/admin/login/" in response["Location"])


@pytest.mark.parametrize("login", CAST)
def test_only_some_roles_can_open_the_administration(browsers: dict[str, Client], login: str):
    page = browsers[login].get("/admin/", follow=True)

    expected_status = 200 if login in ADMIN_LOGINS or login == "visitor" else 403
    assert page.status_code == expected_status
    assert (page.request["PATH_INFO"] == "/login/") == (login == "visitor")


def test_dashboard_shows_only_permitted_areas(browsers: dict[str, Client]):
    for login in ("sonja", "carl"):
        page = browsers[login].get("/admin/").content.decode()
        for model in ADMIN_MODELS:
            is_shown = f'href="{page_path(model, "changelist")}"' in page
            assert not is_shown or is_permitted(login, model._meta.app_label), (login, model)
        assert "active users" not in page and "records deleted" not in page


@pytest.mark.parametrize("model", ADMIN_MODELS, ids=MODEL_LABELS)
def test_each_page_requires_its_role(browsers: dict[str, Client], model: Any):
    forbidden_actions = FORBIDDEN_ACTIONS.get(model._meta.label, set())
    for login, browser in browsers.items():
        has_permission = is_permitted(login, model._meta.app_label)
        list_page, add_page = browser.get(page_path(model, "changelist")), browser.get(page_path(model, "add"))
        add_response = browser.post(page_path(model, "add"), {})

        list_status = 302 if model is Table else 200  # the designer lists the tables
        assert list_page.status_code == list_status if has_permission else is_refused(list_page), (
            login,
            list_page.status_code,
        )
        # The page of collections is open to all users, so its redirect is too.
        if model._meta.label in REPLACED_FORMS and (has_permission or add_page.get("Location") == "/collections/"):
            assert add_page["Location"] == add_response["Location"] in ("/collections/", "/design/")
            continue
        for response in (add_page, add_response):
            assert is_refused(response) != (has_permission and "add" not in forbidden_actions), login


@pytest.mark.parametrize("model", ADMIN_MODELS, ids=MODEL_LABELS)
def test_each_page_has_the_permissions_of_its_area(rf: Any, db: None, model: Any):
    model_admin = admin.site._registry[model]
    forbidden_actions = FORBIDDEN_ACTIONS.get(model._meta.label, set())
    for login in CAST[:-1]:
        request = rf.get("/")
        request.user = make_user(login, *([ROLES[login]] if login in ROLES else []))
        has_permission = is_permitted(login, model._meta.app_label)
        permissions = model_admin.get_model_perms(request)

        assert permissions == {
            action: has_permission and action not in forbidden_actions for action in ("add", "change", "delete", "view")
        } | {"view": has_permission}, login
        assert not has_permission or all(
            has_same_view_permission(model_admin, request, inline)
            for inline in model_admin.get_inline_instances(request)
        )


def has_same_view_permission(model_admin: Any, request: Any, inline: Any) -> bool:
    return bool(inline.has_view_permission(request) == model_admin.has_view_permission(request))


RECORD_FACTORIES = {
    "accounts.User": lambda: User.objects.create_user("target"),
    "accounts.Role": lambda: Role.objects.create(name="target"),
    "accounts.Group": lambda: Group.objects.create(name="target"),
    "accounts.Company": lambda: Company.objects.create(name="target"),
}


@pytest.mark.parametrize("label", RECORD_FACTORIES)
@pytest.mark.parametrize("login", ["sonja", "carl", "bob", "ivan", "visitor"])
def test_account_records_cannot_be_reached_without_the_role(browsers: dict[str, Client], label: str, login: str):  # X25
    """Every path of the model, by GET and POST, with an existing record."""
    model = apps.get_model(label)
    record = RECORD_FACTORIES[label]()
    count_before = model.objects.count()
    for path in admin_paths(model, record.pk):
        for response in (browsers[login].get(path), browsers[login].post(path, {"name": "taken", "post": "yes"})):
            assert is_refused(response) or response.status_code == 404, path

    assert model.objects.count() == count_before
    assert "target" in str(record.refreshed())


def admin_paths(model: Any, pk: str) -> Iterator[str]:
    """Every path of the admin pages of a model, including its actions."""
    for url_pattern in admin.site._registry[model].get_urls():
        if isinstance(url_pattern, URLPattern) and url_pattern.name:
            for arguments in ((), (pk,), (pk, "1")):
                try:
                    yield reverse(f"admin:{url_pattern.name}", args=arguments)
                except NoReverseMatch:
                    continue


def test_admin_paths_are_collected(db: None):
    paths = list(admin_paths(User, "1"))

    assert {"/admin/accounts/user/1/password/", "/admin/accounts/user/1/history/"} <= set(paths)
    assert len(paths) >= 7


@pytest.mark.parametrize("login", ["sonja", "carl", "bob", "visitor"])
def test_reference_search_shows_only_permitted_records(browsers: dict[str, Client], login: str):
    make_user("zebra")
    parameters = {"app_label": "accounts", "model_name": "accesskey", "field_name": "user", "term": "zeb"}
    response = browsers[login].get("/admin/autocomplete/", parameters)

    assert is_refused(response)
    assert b"zebra" not in response.content
    assert b"zebra" in browsers["alice"].get("/admin/autocomplete/", parameters).content


@pytest.mark.parametrize("model", [Session, FailedAttempts, UserRole, UserGroup])
def test_internal_models_are_not_registered(model: Any):  # X24
    assert model not in admin.site._registry


def test_history_tables_are_not_registered():
    assert not [model for model in admin.site._registry if model.__name__.startswith("Historical")]


def test_save_as_new_is_disabled():  # X25
    """Saving as new would require only the add permission, and copy columns that the form does not show."""
    assert not [model_admin for model_admin in admin.site._registry.values() if model_admin.save_as]


def test_menu_search_depends_on_roles(browsers: dict[str, Client]):
    """If the theme cached results, they would outlast a revoked role and require the broker."""
    page = browsers["alice"].get("/admin/search/?s=role").content.decode()
    UserRole.objects.filter(user__login="alice").update(role=Role.objects.get(name="sso_admin"))

    assert "/admin/accounts/role/" in page
    assert "/admin/accounts/role/" not in browsers["alice"].get("/admin/search/?s=role").content.decode()
