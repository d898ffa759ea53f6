"""Connections and certificates in the Table API."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.models import IdpCertificate, OidcSetting
from system.models import DeletionLogEntry
from tableapi.models import Choice, Column
from tests.providers.hostile import HostileProvider
from tests.sso.connections import CALLBACK_URL, VALID_COLUMNS, make_connection, welcome_page
from tests.tableapi.world import api, data_of, error_of

pytestmark = pytest.mark.django_db

COLUMNS = (
    "name", "url_idp", "realm", "authorization_type", "client_id", "client_secret", "user_field", "redirect_uri",
    "scope", "active", "enable_user_creation", "ignore_case", "enable_role_mapping", "update_data_when_login", "script",
    "response_type", "role_claim", "group_claim",
    "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint",
)  # fmt: skip
ENDPOINT_COLUMNS = COLUMNS[-6:]


def test_the_columns_are_those_of_the_contract():
    columns = {column.name: column for column in Column.objects.filter(table__name="oidc_setting")}
    assert set(columns) == set(COLUMNS)
    assert columns["client_secret"].type == "secret" and columns["script"].type == "text"
    assert {name for name, column in columns.items() if column.read_only} == set(ENDPOINT_COLUMNS)
    mandatory_names = {name for name, column in columns.items() if column.mandatory}
    assert mandatory_names == {"name", "url_idp", "realm", "client_id", "redirect_uri"}
    assert columns["url_idp"].label == "Provider URL" and columns["url_idp"].table.label == "OIDC setting"
    choices = Choice.objects.filter(column=columns["authorization_type"]).values_list("value", "label")
    assert list(choices) == [("code", "Authorization Code Flow"), ("pkce", "Proof Key for Code Exchange (PKCE)")]
    certificate_columns = Column.objects.filter(table__name="idp_certificate")
    assert {(column.name, column.type, column.read_only) for column in certificate_columns} == {
        ("kid", "string", True), ("url_idp", "string", True), ("realm", "string", True), ("json", "json", True),
    }  # fmt: skip


def test_the_etag_of_a_new_record_survives_discovery(
    provider: HostileProvider, as_alice: Client, alice: User, django_capture_on_commit_callbacks: Any
):
    with django_capture_on_commit_callbacks(execute=True):
        response = api(alice).post("oidc_setting", {**VALID_COLUMNS, "url_idp": provider.url_idp, "realm": "main"})
    (record,) = data_of(response)
    assert OidcSetting.objects.get().issuer == provider.issuer
    patch_response = api(alice).patch(
        f"oidc_setting/{record['sys_id']}", {"name": "New"}, headers={"If-Match": response["ETag"]}
    )
    assert data_of(patch_response)[0]["name"] == "New"


@pytest.mark.parametrize("login", ["alice", "sonja"])
def test_admin_and_sso_admin_can_create_read_change_and_delete(request: Any, login: str):
    caller = api(request.getfixturevalue(login))
    (record,) = data_of(caller.post("oidc_setting", VALID_COLUMNS))
    assert (record["scope"], record["response_type"], record["active"], record["issuer"]) == (
        "openid",
        "code",
        False,
        None,
    )
    assert record["script"].startswith("function map(claims)")
    path = f"oidc_setting/{record['sys_id']}"
    (changed_record,) = data_of(caller.patch(path, {"active": True, "client_secret": "canary"}))
    assert changed_record["active"] is True and "client_secret" not in changed_record and welcome_page() == CALLBACK_URL
    assert OidcSetting.objects.get().decrypted_client_secret == "canary"
    (stored_record,) = data_of(caller.get(path))
    assert set(COLUMNS) - set(stored_record) == {"client_secret"}
    assert data_of(caller.patch(path, stored_record)) == [stored_record], "a read record can be sent back unchanged"
    assert data_of(caller.put(path, stored_record)) == [stored_record]
    assert OidcSetting.objects.get().decrypted_client_secret == "canary", "a column that is not sent is kept"
    data_of(caller.patch(path, {"client_secret": None}))
    assert OidcSetting.objects.get().decrypted_client_secret == ""
    assert caller.delete(path).status_code == 200
    assert not OidcSetting.objects.exists() and welcome_page() == ""


def test_other_users_get_404(bob: User, carl: User):
    setting = make_connection()
    for user in (bob, carl):
        for table in ("oidc_setting", "idp_certificate"):
            assert error_of(api(user).get(table)) == (404, "table_not_found", None)
        assert api(user).post("oidc_setting", VALID_COLUMNS).status_code == 404
        assert api(user).patch(f"oidc_setting/{setting.pk}", {"name": "x"}).status_code == 404
        assert api(user).delete(f"oidc_setting/{setting.pk}").status_code == 404


def test_an_additional_rule_does_not_grant_write_access(bob: User):
    from tests.tableapi.world import rule

    setting = make_connection()
    for operation in ("read", "create", "write", "delete"):
        rule(operation, "oidc_setting")
    assert api(bob).get(f"oidc_setting/{setting.pk}").status_code == 200
    assert api(bob).post("oidc_setting", VALID_COLUMNS).status_code == 403
    assert api(bob).patch(f"oidc_setting/{setting.pk}", {"name": "x"}).status_code == 403
    assert api(bob).delete(f"oidc_setting/{setting.pk}").status_code == 403


def test_the_secret_is_neither_read_nor_searched_nor_sorted(sonja: User):  # A56
    from system import encryption

    setting = make_connection(client_secret=encryption.encrypt("canary"))
    caller = api(sonja)
    for response in (caller.get("oidc_setting"), caller.get(f"oidc_setting/{setting.pk}")):
        assert b"canary" not in response.content and setting.client_secret.encode() not in response.content
    for query in ("client_secretSTARTSWITHg", "client_secretISNOTEMPTY", "ORDERBYclient_secret"):
        assert caller.get("oidc_setting", query=query).status_code == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url_idp": "http://idp.example.com"}, "url_idp"),
        ({"url_idp": "https://169.254.169.254"}, "url_idp"),
        ({"realm": "../x"}, "realm"),
        ({"redirect_uri": "https://evil.example.com/"}, "redirect_uri"),
        ({"scope": "email"}, "scope"),
        ({"script": "function map("}, "script"),
        ({"authorization_type": "password"}, "authorization_type"),
        ({"client_secret": "a\nb"}, "client_secret"),
        ({"client_secret": {"a": 1}}, "client_secret"),
        ({"client_secret": ""}, "client_secret"),
        ({"client_secret": "x" * 1001}, "client_secret"),
        ({"name": "a\nb"}, "name"),
    ],
    ids=str,
)
def test_validation_errors_are_422(sonja: User, body: dict[str, Any], field: str):  # A21 A23 A24 A31
    assert error_of(api(sonja).post("oidc_setting", {**VALID_COLUMNS, **body})) == (422, "invalid_value", field)
    setting = make_connection()
    assert error_of(api(sonja).patch(f"oidc_setting/{setting.pk}", body)) == (422, "invalid_value", field)


@pytest.mark.parametrize("name", ENDPOINT_COLUMNS)
def test_discovered_endpoints_are_read_only(sonja: User, name: str):
    setting = make_connection()
    assert error_of(api(sonja).patch(f"oidc_setting/{setting.pk}", {name: "https://x.example.com"})) == (
        400,
        "read_only",
        name,
    )


@pytest.mark.parametrize("name", ["needs_approval", "algorithms", "last_claims", "resolve_error"])
def test_other_fields_are_not_columns(alice: User, name: str):
    setting = make_connection()
    assert error_of(api(alice).patch(f"oidc_setting/{setting.pk}", {name: "x"})) == (400, "unknown_field", name)


def test_a_change_by_sso_admin_requires_approval(sonja: User, alice: User):  # A57
    setting = make_connection()
    data_of(api(sonja).patch(f"oidc_setting/{setting.pk}", {"client_id": "mine"}))
    assert setting.refreshed().needs_approval
    data_of(api(alice).patch(f"oidc_setting/{setting.pk}", {"name": "Not looked at"}))
    assert setting.refreshed().needs_approval


def test_a_change_by_a_key_scoped_to_sso_admin_requires_approval(alice: User):  # A57
    from accounts.authentication import access_keys
    from accounts.models import Role
    from tests.accounts.callers import bearer_auth

    setting = make_connection()
    scope = [Role.objects.get(name="sso_admin").pk]
    for key_scope, needs_approval in (([], False), (scope, True)):
        key = access_keys.create_key(alice, "a script", expires_at=None, scope=key_scope)
        response = Client().patch(
            f"/rest/v1/table/oidc_setting/{setting.pk}",
            {"client_id": f"id-{needs_approval}"},
            content_type="application/json",
            headers=bearer_auth(key),
        )
        assert response.status_code == 200
        assert setting.refreshed().needs_approval is needs_approval


def test_certificates_can_be_read_and_deleted_but_not_written(alice: User, sonja: User, bob: User):
    for user in (alice, sonja):
        certificate = IdpCertificate.objects.create(
            kid="k", url_idp="https://idp.example.com", realm="acme", json={"kty": "RSA"}
        )
        path = f"idp_certificate/{certificate.pk}"
        (stored_record,) = data_of(api(user).get(path))
        assert (stored_record["kid"], stored_record["realm"], stored_record["json"]) == ("k", "acme", {"kty": "RSA"})
        body = {"kid": "mine", "json": {"kty": "RSA"}}
        assert api(user).post("idp_certificate", body).status_code == 400
        assert api(user).post("idp_certificate", {}).status_code == 422
        assert api(user).patch(path, body).status_code == 400
        assert api(bob).delete(path).status_code == 404
        assert api(user).delete(path).status_code == 200
    assert DeletionLogEntry.objects.filter(table="idp_certificate", display_value="k").count() == 2
    assert IdpCertificate.objects.count() == 0
