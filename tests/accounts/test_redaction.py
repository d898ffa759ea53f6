"""No password, key, cookie or hash of one appears in a log, a table or an error page."""

import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connection
from django.test import Client

from accounts.authentication import access_keys, passwords
from accounts.models import AccessKey, User
from accounts.models.access_keys import hash_key
from tests.accounts.callers import API_SIGN_IN_PATH, ME_PATH, basic_auth, bearer_auth, get_me, request_api_key
from tests.support.users import make_user

CORRECT_PASSWORD = "canary-right-Kq7 horse"
WRONG_PASSWORD = "canary-wrong-Kq7 horse"
NEW_PASSWORD = "canary-newer-Kq7 horse"


def secrets_of(user: User, *other_secrets: str) -> set[str]:
    """The secrets in plain text, as stored hashes, and as encoded in requests."""
    encoded_passwords = {
        basic_auth(user.login, password)["Authorization"].partition(" ")[2]
        for password in (CORRECT_PASSWORD, WRONG_PASSWORD, NEW_PASSWORD)
    }
    return {
        CORRECT_PASSWORD,
        WRONG_PASSWORD,
        NEW_PASSWORD,
        "canary",
        user.password,
        *encoded_passwords,
        *other_secrets,
    } - {""}


def stored_tables() -> Iterator[tuple[str, str]]:
    """The text of every table except those that store the hashes."""
    tables_with_hashes = {"user", "accounts_access_key", "accounts_session"}
    table_names = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - tables_with_hashes
    with connection.cursor() as cursor:
        for table_name in sorted(table_names):
            cursor.execute(f"SELECT coalesce(json_agg(to_json(stored))::text, '') FROM \"{table_name}\" AS stored")
            yield table_name, cursor.fetchone()[0]


def use_every_credential(dora: User) -> list[str]:
    """Signs in, creates and revokes keys, and changes passwords on every route; returns the secrets of all keys."""
    admin_browser, browser = Client(), Client()
    admin_browser.force_login(make_user("alice", "admin"))
    browser.post("/login/", {"login": "dora", "password": WRONG_PASSWORD})
    browser.post("/login/", {"login": "dora", "password": CORRECT_PASSWORD})
    first_cookie = browser.cookies["servicebase_session"].value
    response: Any = browser.post("/account/keys/", {"name": "script", "days": "30"}, follow=True)
    named_key = response.context["new_key"]
    login_key = request_api_key("dora", CORRECT_PASSWORD).json()["data"]["auth_key"]
    key_page: Any = admin_browser.post("/admin/accounts/accesskey/add/", {"user": dora.pk, "name": "x"}, follow=True)
    admin_created_key = key_page.context_data["secret"]
    for headers in (
        basic_auth("dora", CORRECT_PASSWORD),
        basic_auth("dora", WRONG_PASSWORD),
        bearer_auth(named_key),
        bearer_auth(login_key),
        bearer_auth(named_key + "x"),
    ):
        get_me(headers)
    request_api_key("dora", WRONG_PASSWORD)
    Client().get(f"{ME_PATH}?password={WRONG_PASSWORD}&key={named_key}")
    Client().post(
        API_SIGN_IN_PATH, {"username": WRONG_PASSWORD, "password": CORRECT_PASSWORD}, content_type="application/json"
    )
    Client().post(API_SIGN_IN_PATH, f'{{"password": "{WRONG_PASSWORD}', content_type="application/json")
    form = {"old_password": CORRECT_PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    browser.post("/account/password/", {**form, "old_password": WRONG_PASSWORD})
    browser.post("/account/password/", form)
    password_form = {
        "usable_password": "true",
        "password1": CORRECT_PASSWORD,
        "password2": CORRECT_PASSWORD,
        "set-password": "1",
    }
    admin_browser.post(f"/admin/accounts/user/{dora.pk}/password/", password_form)
    for key in AccessKey.objects.all():
        admin_browser.post(f"/admin/accounts/accesskey/{key.pk}/delete/", {"post": "yes"})
    cookies = [client.cookies["servicebase_session"].value for client in (browser, admin_browser)]
    return [
        named_key,
        login_key,
        admin_created_key,
        *(hash_key(key) for key in (named_key, login_key, admin_created_key)),
        first_cookie,
        *cookies,
    ]


def test_no_secret_appears_in_logs_or_tables(db: None, log_lines: list[str], capfd: Any):
    dora = User.objects.create_user("dora", CORRECT_PASSWORD)
    used_secrets = use_every_credential(dora)
    log_text = "\n".join(log_lines) + "".join(capfd.readouterr())
    secrets = secrets_of(dora, *used_secrets)

    assert log_text.count("request_finished") > 15 and "/rest/v1/auth/login" in log_text, "something was logged"
    assert not [secret for secret in secrets if secret in log_text]
    tables = dict(stored_tables())
    assert "password" in tables["django_admin_log"] and "dora" in tables["accounts_historicaluser"]
    leaks = [(name, secret) for name, text in tables.items() for secret in secrets if secret in text]
    assert leaks == []


def test_server_error_reveals_no_secret(db: None, log_lines: list[str], capfd: Any, monkeypatch: Any):
    """The worst case: an exception while the password is in a local variable."""
    make_user("dora")
    client = Client(raise_request_exception=False)

    def raise_error(*_: Any) -> bool:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(passwords, "check_password", raise_error)
    key = access_keys.create_key(make_user("carol"), "script", expires_at=None)
    responses = [
        client.get(ME_PATH, headers=basic_auth("dora", WRONG_PASSWORD)),
        client.post(
            API_SIGN_IN_PATH, {"username": "dora", "password": WRONG_PASSWORD}, content_type="application/json"
        ),
        client.post("/login/", {"login": "dora", "password": WRONG_PASSWORD}, headers={"Accept": "text/html"}),
    ]
    monkeypatch.setattr(access_keys, "query_owner", raise_error)
    responses.append(client.get(ME_PATH, headers=bearer_auth(key)))
    log_text = "\n".join(log_lines) + "".join(capfd.readouterr())

    assert [response.status_code for response in responses] == [500] * 4
    assert "broken on purpose" in log_text, "the fault is logged"
    for secret in (WRONG_PASSWORD, "canary", key, hash_key(key), basic_auth("dora", WRONG_PASSWORD)["Authorization"]):
        assert secret not in log_text
        assert not [response for response in responses if secret in response.content.decode()]
    assert not [response for response in responses if b"broken" in response.content]


def test_key_in_free_text_is_redacted(bob: User):
    from system.monitoring.logs import clean

    key = access_keys.create_key(bob, "script", expires_at=None)
    basic_credentials = basic_auth("bob", "canary")["Authorization"]

    for text in (key, f"sent {key}!", f"Bearer {key}", f"failed with {basic_credentials}", json.dumps({"got": key})):
        assert "[hidden]" in clean(text)
        assert key not in clean(text) and basic_credentials not in clean(text)
