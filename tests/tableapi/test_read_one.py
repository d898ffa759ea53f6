"""GET of one record: the responses to different callers, which reveal nothing about hidden records."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.tableapi.world import ApiClient, api, data_of, error_of, field, grant, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def lamp(db: Any) -> str:
    table("device")
    field("device", "name", is_display=True)
    field("device", "price", "integer")
    rule("read", "device", condition="price<100")
    return record("device", name="Lamp", price=5)


def identical_content(responses: list[Any]) -> bytes:
    (triple,) = {(response.status_code, response.content, response.get("WWW-Authenticate")) for response in responses}
    return triple[1]


def test_record_is_returned_with_every_column(lamp: str, bob: User):
    response = api(bob).get(f"device/{lamp}")

    assert response["Content-Type"] == "application/json"
    (record,) = data_of(response)
    assert list(record) == ["sys_id", "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by",
                           "sys_version", "sys_db_table_id", "name", "price"]  # fmt: skip
    assert (record["sys_id"], record["name"], record["price"], record["sys_version"]) == (lamp, "Lamp", 5, 0)


@pytest.mark.parametrize("credential", ["password", "key"])
def test_basic_and_key_credentials_are_equivalent(lamp: str, bob: User, credential: str):
    assert data_of(api(bob, credential=credential).get(f"device/{lamp}", fields="name")) == [{"name": "Lamp"}]


def test_anonymous_request_is_401(lamp: str, bob: User):
    wrong_caller = ApiClient({"Authorization": "Basic Ym9iOndyb25n"})
    responses = [caller.get(path) for caller in (api(None), wrong_caller)
               for path in (f"device/{lamp}", "device", "nothing", "device/1", "device?sysparm_limit=x")]  # fmt: skip

    assert {error_of(response) for response in responses} == {(401, "unauthenticated", None)}
    identical_content(responses)


def test_session_is_not_accepted(lamp: str, as_alice: Client):  # B57
    assert as_alice.get("/api/me").status_code == 200
    for path in (f"/rest/v1/table/device/{lamp}", "/rest/v1/table/device"):
        assert error_of(as_alice.get(path)) == (401, "unauthenticated", None)


@pytest.mark.parametrize(
    "invalid_id",
    ["1" * 18, "1" * 33, "-1", "1_000", "%2012", "+5", "%D9%A3", "%C2%B2", "12%0A", "12%20", "X", "1e5", "%27", "1.0",
     "0x1", "null", "a" * 5000, "%F0%9F%92%A1"],
)  # fmt: skip
def test_invalid_record_ids_get_the_same_404(lamp: str, bob: User, invalid_id: str):  # B36
    responses = [api(bob).get(f"device/{path}") for path in (invalid_id, "179999999900000001")]

    assert error_of(responses[0]) == (404, "record_not_found", None)
    identical_content(responses)


def test_unreadable_record_is_like_a_missing_one(lamp: str, bob: User):  # B21
    hidden_lamp = record("device", name="Chandelier", price=100)

    assert data_of(api(bob).get(f"device/{lamp}"))
    hidden_response, missing_response = api(bob).get(f"device/{hidden_lamp}"), api(bob).get("device/179999999900000001")
    assert error_of(hidden_response) == (404, "record_not_found", None)
    assert identical_content([hidden_response, missing_response])
    assert hidden_response.headers.keys() == missing_response.headers.keys()


@pytest.mark.parametrize(
    "name",
    ["nothing", "Device", "DEVICE", 'device"', "device'", "records.device", "public.user", "pg_catalog.pg_user",
     "pg_user", "device;--", "x" * 64, "x" * 5000, "%D0%B4", "accounts_access_key", "tableapi_state",
     "tableapi_idempotent_answer", "django_session", "%20device", "device%0A", "sys_id", "*", "__class__"],
)  # fmt: skip
def test_invalid_table_names_get_the_same_404(lamp: str, alice: User, bob: User, name: str):  # B37
    for user in (alice, bob):
        list_response, record_response = api(user).get(name), api(user).get(f"{name}/{lamp}")
        assert error_of(list_response) == (404, "table_not_found", None)
        assert identical_content([list_response, record_response, api(user).get("surely_not_there")])


@pytest.mark.parametrize("path", ["device%00", "device/%00", "%00/1", "device/1%00"])
def test_nul_in_the_path_is_404(lamp: str, alice: User, path: str):  # B37
    assert error_of(api(alice).get(path))[0] == 404


def test_table_without_rules_is_like_a_missing_one(lamp: str, bob: User):  # B75
    table("vault")
    field("vault", "name")
    hidden_record = record("vault", name="Gold")
    rule("read", "vault", roles=["keeper"])
    table("attic")

    responses = [api(bob).get(path) for path in ("vault", f"vault/{hidden_record}", "attic", "nothing", "nothing/1")]
    assert error_of(responses[0]) == (404, "table_not_found", None)
    identical_content(responses)
    grant(bob, "keeper")
    assert data_of(api(bob).get(f"vault/{hidden_record}", fields="name")) == [{"name": "Gold"}]
    assert error_of(api(bob).get("attic"))[0] == 404


def test_table_exists_for_callers_with_any_permission(lamp: str, bob: User):
    table("inbox")
    field("inbox", "text")
    letter = record("inbox", text="Hello")
    rule("create", "inbox")

    assert data_of(api(bob).get("inbox", count="exact")) == []
    assert api(bob).get("inbox", count="exact")["X-Total-Count"] == "0"
    assert error_of(api(bob).get(f"inbox/{letter}")) == (404, "record_not_found", None)


def test_trailing_slash_is_optional(lamp: str, bob: User):
    for path in ("device", f"device/{lamp}", "nothing", "device/1"):
        plain_response, slashed_response = api(bob).get(path), api(bob).get(f"{path}/")
        assert (plain_response.status_code, plain_response.content) == (
            slashed_response.status_code,
            slashed_response.content,
        )


def test_head_has_the_headers_of_get(lamp: str, bob: User):  # B66
    for path in (f"device/{lamp}", "device?sysparm_limit=1&sysparm_count=exact", "device/1", "nothing"):
        response, head_response = api(bob).get(path), api(bob).head(path)
        assert head_response.content == b""
        assert head_response.status_code == response.status_code
        for name in ("ETag", "Content-Type", "X-Total-Count", "Content-Length", "Link"):
            assert head_response.get(name) == response.get(name), (path, name)


def test_links_use_the_base_url(lamp: str, bob: User, settings: Any):
    for base_url, expected_url in (("", "http://testserver"), ("https://desk.example.com", "https://desk.example.com")):
        settings.BASE_URL = base_url
        reference = data_of(api(bob).get(f"device/{lamp}"))[0]["sys_db_table_id"]
        assert reference["link"] == f"{expected_url}/rest/v1/table/sys_db_table/{reference['value']}"


class TestETag:
    def test_matching_etag_gives_304(self, lamp: str, bob: User):
        first_response = api(bob).get(f"device/{lamp}")
        tag = first_response["ETag"]

        assert tag.startswith('"0-')
        for if_none_match in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            second_response = api(bob).get(f"device/{lamp}", headers={"If-None-Match": if_none_match})
            assert (second_response.status_code, second_response.content, second_response["ETag"]) == (304, b"", tag)
        for etag in ('"x"', '"0-0"', tag.strip('"'), ""):
            assert api(bob).get(f"device/{lamp}", headers={"If-None-Match": etag}).content == first_response.content

    def test_etag_changes_with_version_and_body(self, lamp: str, alice: User, bob: User):
        tags = [
            api(bob).get(f"device/{lamp}", **options)["ETag"]
            for options in ({}, {"fields": "name"}, {"fields": "price"})
        ]
        assert len(set(tags)) == 3
        data_of(api(alice).patch(f"device/{lamp}", {"price": 6}))
        (etag_after,) = {api(bob).get(f"device/{lamp}", fields="name")["ETag"]}
        assert etag_after.startswith('"1-') and etag_after.partition("-")[2] == tags[1].partition("-")[2]
        assert data_of(api(bob).get(f"device/{lamp}", headers={"If-None-Match": tags[0]}))[0]["price"] == 6

    def test_hidden_version_is_not_in_the_etag(self, lamp: str, alice: User, bob: User):  # B20
        """The version would reveal that a hidden column was changed."""
        rule("read", "device", "sys_version", roles=["admin"])
        rule("write", "device")
        response_before = api(bob).get(f"device/{lamp}", fields="name")
        data_of(api(alice).patch(f"device/{lamp}", {"price": 6}))
        response_after = api(bob).get(f"device/{lamp}", fields="name")

        assert "ETag" not in response_before and response_before.content == response_after.content
        assert response_before.headers.keys() == response_after.headers.keys()
        for version in range(3):
            headers = {"If-Match": f'"{version}-x"'}
            assert error_of(api(bob).patch(f"device/{lamp}", {"name": "b"}, headers=headers)) == (412, "stale", None)
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}, headers={"If-Match": "*"}).status_code == 200

    def test_missing_record_has_no_etag(self, lamp: str, bob: User):
        response = api(bob).get("device/1", headers={"If-None-Match": "*"})
        assert error_of(response)[0] == 404 and "ETag" not in response


class TestMethods:
    @pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "FROBNICATE"])
    def test_other_methods_are_refused_without_revealing_the_table(self, lamp: str, alice: User, method: str):  # B66
        for path in ("device", f"device/{lamp}"):
            response = api(alice).send(method, path)
            assert error_of(response)[:2] == (405, "method_not_allowed")
            assert b"name" not in response.content and b"price" not in response.content
            assert "GET" in response["Allow"]

    @pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
    def test_method_override_is_ignored(self, lamp: str, alice: User, header: str):  # B66
        response = api(alice).get(f"device/{lamp}?_method=DELETE", headers={header: "DELETE"})
        assert data_of(response)[0]["name"] == "Lamp"
        assert data_of(api(alice).get(f"device/{lamp}"))

    def test_browser_gets_json(self, lamp: str, alice: User):
        for path in (
            f"device/{lamp}",
            "nothing",
            "device?format=api",
            "device?format=xml",
            f"device/{lamp}?format=api",
        ):
            response = api(alice).get(path, headers={"Accept": "text/html,application/xhtml+xml"})
            assert response["Content-Type"] == "application/json"
            assert response.status_code == (404 if path == "nothing" else 200)

    def test_responses_are_not_cached(self, lamp: str, bob: User):
        for path in (f"device/{lamp}", "device", "nothing"):
            assert api(bob).get(path)["Cache-Control"] == "no-store"
