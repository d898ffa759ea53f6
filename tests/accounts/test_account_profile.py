"""`/account/`: the page, and the profile that users edit themselves."""

import pytest
from django.test import Client

from accounts.models import User
from tests.accounts.callers import sign_in

PROFILE = {"first_name": "Bob", "last_name": "Builder", "phone": "+49 1"}
FORM_PATHS = [
    "/account/password/",
    "/account/keys/",
    "/account/keys/1/revoke/",
    "/account/sessions/a/end/",
    "/account/sessions/end-others/",
]


def test_anonymous_user_is_redirected_to_sign_in(client: Client, db: None):
    assert client.get("/account/")["Location"] == "/login/?next=/account/"
    for path in ["/account/", *FORM_PATHS]:
        assert client.post(path)["Location"] == f"/login/?next={path}"


@pytest.mark.parametrize("path", FORM_PATHS)
def test_get_of_a_form_path_redirects_to_the_page(as_bob: Client, path: str):
    """A browser requests it after signing in again, or when the page of a submitted form is reloaded."""
    assert as_bob.get(path)["Location"] == "/account/"


@pytest.mark.parametrize("path", ["/account/", *FORM_PATHS])
def test_form_without_csrf_token_is_refused(bob: User, path: str):
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    assert client.post(path, PROFILE).status_code == 403
    assert bob.refreshed().first_name == ""


def test_page_shows_login_and_roles(as_sonja: Client):
    page = as_sonja.get("/account/")

    assert page.status_code == 200
    assert b"sonja" in page.content and b"sso_admin" in page.content


def test_profile_change_records_the_user_who_made_it(as_bob: Client, bob: User):
    response = as_bob.post("/account/", PROFILE)

    assert (response.status_code, response["Location"]) == (302, "/account/")
    stored_profile = User.objects.values(*PROFILE, "sys_updated_by").get()
    assert stored_profile == {**PROFILE, "sys_updated_by": bob.pk}
    assert b"Profile saved." in as_bob.get("/account/").content


@pytest.mark.parametrize(
    "field", ["login", "email", "active", "password", "company", "is_staff", "grants", "sys_id", "roles"]
)
def test_other_columns_cannot_be_changed(as_bob: Client, bob: User, field: str):
    columns_before = User.objects.values("login", "email", "active", "password", "company", "sys_id").get()
    as_bob.post("/account/", {**PROFILE, field: "0"})

    assert User.objects.values("login", "email", "active", "password", "company", "sys_id").get() == columns_before
    assert not bob.grants.exists()


def test_time_zones_are_grouped_and_saved(as_bob: Client, bob: User):
    page = as_bob.get("/account/").content.decode()
    assert '<optgroup label="Europe">' in page and '<option value="Europe/Berlin">Berlin</option>' in page
    assert '<option value="UTC" selected>UTC</option>' in page
    as_bob.post("/account/", {**PROFILE, "time_zone": "America/Argentina/Buenos_Aires"})

    assert bob.refreshed().time_zone == "America/Argentina/Buenos_Aires"
    assert "selected>Argentina/Buenos Aires</option>" in as_bob.get("/account/").content.decode()


def test_names_are_escaped(as_bob: Client):
    as_bob.post("/account/", {**PROFILE, "first_name": '"><script>alert(1)</script>'})

    assert b"<script>alert" not in as_bob.get("/account/").content


def test_unknown_user_agent_has_no_name(bob: User):
    page = sign_in("bob", HTTP_USER_AGENT="<script>alert(1)</script>").get("/account/")

    assert b"Unknown browser" in page.content
    assert b"alert(1)" not in page.content
