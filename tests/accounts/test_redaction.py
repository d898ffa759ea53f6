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
from tests.accounts.callers import ME, SIGN_IN, api_key, ask, basic, bearer
from tests.support.users import make_user

RIGHT = "canary-right-Kq7 horse"
WRONG = "canary-wrong-Kq7 horse"
NEW = "canary-newer-Kq7 horse"


def secrets_of(user: User, *more: str) -> set[str]:
    """The plain secrets, what a database copy would give, and how they travel."""
    travelling = {basic(user.login, word)["Authorization"].partition(" ")[2] for word in (RIGHT, WRONG, NEW)}
    return {RIGHT, WRONG, NEW, "canary", user.password, *travelling, *more} - {""}


def tables() -> Iterator[tuple[str, str]]:
    """The text of every table but those whose matter the hashes are."""
    own = {"user", "accounts_access_key", "accounts_session"}
    names = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - own
    with connection.cursor() as cursor:
        for name in sorted(names):
            cursor.execute(f"SELECT coalesce(json_agg(to_json(stored))::text, '') FROM \"{name}\" AS stored")
            yield name, cursor.fetchone()[0]


def use_everything(dora: User) -> list[str]:
    """Sign in, fail, make and revoke keys, change passwords: by page, admin and API. Returns the secrets made."""
    admin, browser = Client(), Client()
    admin.force_login(make_user("alice", "admin"))
    browser.post("/login/", {"login": "dora", "password": WRONG})
    browser.post("/login/", {"login": "dora", "password": RIGHT})
    first_cookie = browser.cookies["servicebase_session"].value
    response: Any = browser.post("/account/keys/", {"name": "script", "days": "30"}, follow=True)
    named = response.context["new_key"]
    login_key = api_key("dora", RIGHT).json()["data"]["auth_key"]
    added: Any = admin.post("/admin/accounts/accesskey/add/", {"user": dora.pk, "name": "x"}, follow=True)
    by_admin = added.context_data["secret"]
    for headers in (basic("dora", RIGHT), basic("dora", WRONG), bearer(named), bearer(login_key), bearer(named + "x")):
        ask(headers)
    api_key("dora", WRONG)
    Client().get(f"{ME}?password={WRONG}&key={named}")
    Client().post(SIGN_IN, {"username": WRONG, "password": RIGHT}, content_type="application/json")
    Client().post(SIGN_IN, f'{{"password": "{WRONG}', content_type="application/json")
    sent = {"old_password": RIGHT, "new_password1": NEW, "new_password2": NEW}
    browser.post("/account/password/", {**sent, "old_password": WRONG})
    browser.post("/account/password/", sent)
    admin_sent = {"usable_password": "true", "password1": RIGHT, "password2": RIGHT, "set-password": "1"}
    admin.post(f"/admin/accounts/user/{dora.pk}/password/", admin_sent)
    for key in AccessKey.objects.all():
        admin.post(f"/admin/accounts/accesskey/{key.pk}/delete/", {"post": "yes"})
    cookies = [first_cookie, browser.cookies["servicebase_session"].value, admin.cookies["servicebase_session"].value]
    return [named, login_key, by_admin, *(hash_key(key) for key in (named, login_key, by_admin)), *cookies]


def test_no_secret_is_left_in_logs_or_tables(db: None, lines: list[str], capfd: Any):
    dora = User.objects.create_user("dora", RIGHT)
    created = use_everything(dora)
    whole = "\n".join(lines) + "".join(capfd.readouterr())
    secrets = secrets_of(dora, *created)

    assert whole.count("request_finished") > 15 and "/rest/v1/auth/login" in whole, "something was logged"
    assert not [secret for secret in secrets if secret in whole]
    stored = dict(tables())
    assert "password" in stored["django_admin_log"] and "dora" in stored["accounts_historicaluser"]
    result = [(name, secret) for name, text in stored.items() for secret in secrets if secret in text]
    assert result == []


def test_server_error_reveals_no_secret(db: None, lines: list[str], capfd: Any, monkeypatch: Any):
    """The worst moment: with the password in hand, something breaks."""
    make_user("dora")
    client = Client(raise_request_exception=False)

    def broken(*_: Any) -> bool:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(passwords, "check_password", broken)
    key = access_keys.create_key(make_user("carol"), "script", expires_at=None)
    responses = [
        client.get(ME, headers=basic("dora", WRONG)),
        client.post(SIGN_IN, {"username": "dora", "password": WRONG}, content_type="application/json"),
        client.post("/login/", {"login": "dora", "password": WRONG}, headers={"Accept": "text/html"}),
    ]
    monkeypatch.setattr(access_keys, "query_owner", broken)
    responses.append(client.get(ME, headers=bearer(key)))
    whole = "\n".join(lines) + "".join(capfd.readouterr())

    assert [response.status_code for response in responses] == [500] * 4
    assert "broken on purpose" in whole, "the fault is logged"
    for secret in (WRONG, "canary", key, hash_key(key), basic("dora", WRONG)["Authorization"]):
        assert secret not in whole
        assert not [response for response in responses if secret in response.content.decode()]
    assert not [response for response in responses if b"broken" in response.content]


def test_key_in_free_text_is_redacted(bob: User):
    from system.monitoring.logs import clean

    key = access_keys.create_key(bob, "script", expires_at=None)
    pair = basic("bob", "canary")["Authorization"]

    for text in (key, f"sent {key}!", f"Bearer {key}", f"failed with {pair}", json.dumps({"got": key})):
        assert "[hidden]" in clean(text)
        assert key not in clean(text) and pair not in clean(text)
