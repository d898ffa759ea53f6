"""Values of particular columns: references, display values, unique values, formatted text, secrets."""

from typing import Any

import pytest
from django.contrib.auth.hashers import check_password

from accounts.models import User
from system import encryption
from system.models import DeletionLogEntry
from tableapi.models import Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, column_values, data_of, error_of, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db

UNKNOWN_ID = "123456789012345678"


@pytest.fixture
def device(db: Any) -> Table:
    """A table with the column `name`, which everybody may read and write."""
    new_table = table("device")
    field("device", "name")
    open_table("device")
    return new_table


def stored_values(column_name: str) -> list[Any]:
    return [row[0] for row in query_rows(f'SELECT "{column_name}" FROM records.device ORDER BY sys_id')]


class TestReferences:
    @pytest.fixture
    def maker(self, device: Table) -> Table:
        """Devices refer to makers. Only auditors can read makers that are not open."""
        new_table = table("maker")
        field("maker", "name", is_display=True)
        rule("read", "maker", condition="nameSTARTSWITHopen")
        rule("read", "maker", roles=["auditor"])
        field("device", "maker", target="maker")
        field("device", "makers", "list", target="maker")
        return new_table

    def test_missing_and_unreadable_references_are_refused_alike(self, maker: Table, bob: User):  # B30
        open_maker, hidden_maker = record("maker", name="open"), record("maker", name="closed")
        lamp = record("device", name="Lamp")
        for name, as_value in (("maker", str), ("makers", lambda value: [open_maker, value])):
            responses = [
                send(path, {name: as_value(sys_id)})
                for sys_id in (hidden_maker, UNKNOWN_ID)
                for send, path in (
                    (api(bob).post, "device"),
                    (api(bob).patch, f"device/{lamp}"),
                    (api(bob).put, f"device/{lamp}"),
                )
            ]
            assert {error_of(response) for response in responses} == {(422, "invalid_value", name)}
            assert len({response.content for response in responses}) == 1
            assert "that you can read" in responses[0].json()["errors"][0]["message"]
            assert api(bob).patch(f"device/{lamp}", {name: as_value(open_maker)}).status_code == 200
            assert api(grant(bob, "auditor")).patch(f"device/{lamp}", {name: as_value(hidden_maker)}).status_code == 200
            bob.grants.all().delete()
        assert len(stored_values("name")) == 1

    def test_stored_unreadable_reference_can_be_kept(self, maker: Table, bob: User):
        hidden_maker = record("maker", name="closed")
        lamp = record("device", name="Lamp", maker=hidden_maker, makers=[hidden_maker])
        (stored_record,) = data_of(api(bob).get(f"device/{lamp}"))
        assert stored_record["maker"]["value"] == hidden_maker
        (record_after,) = data_of(api(bob).put(f"device/{lamp}", stored_record | {"name": "x"}))
        assert (record_after["maker"], record_after["name"]) == (stored_record["maker"], "x")
        assert api(bob).patch(f"device/{lamp}", {"maker": None, "makers": []}).status_code == 200

    def test_reference_to_an_unknown_table_reveals_nothing(self, device: Table, bob: User):  # B30
        table("secret_things")
        field("device", "thing", target="secret_things")
        hidden_thing = record("secret_things")
        responses = [api(bob).post("device", {"thing": sys_id}) for sys_id in (hidden_thing, UNKNOWN_ID)]
        assert (
            error_of(responses[0]) == (422, "invalid_value", "thing") and responses[0].content == responses[1].content
        )

    def test_reference_to_a_child_record_is_accepted(self, maker: Table, bob: User):
        table("factory", parent="maker")
        record_id = record("factory", name="open")
        assert data_of(api(bob).post("device", {"maker": record_id}))[0]["maker"]["value"] == record_id

    def test_records_can_reference_themselves_and_product_records(self, device: Table, bob: User):
        field("device", "part_of", target="device")
        field("device", "owner", target="user")
        lamp = record("device", name="Lamp")
        (record_after,) = data_of(api(bob).patch(f"device/{lamp}", {"part_of": lamp, "owner": bob.pk}))
        assert record_after["part_of"]["value"] == lamp and record_after["owner"]["value"] == bob.pk
        assert error_of(api(bob).patch(f"device/{lamp}", {"owner": lamp})) == (422, "invalid_value", "owner")

    @pytest.mark.parametrize("value", [True, 1.5, {}, {"value": []}, ["x"], "a b", "é", "x" * 33, "1'--"])
    def test_invalid_ids_are_refused(self, maker: Table, bob: User, value: Any):
        for name, body_value in (("maker", value), ("makers", [value])):
            assert error_of(api(bob).post("device", {name: body_value})) == (422, "invalid_value", name)

    def test_adding_to_a_list_keeps_unreadable_items(self, maker: Table, bob: User):
        hidden_maker, open_maker, dangling_id = (
            record("maker", name="hidden 1"),
            record("maker", name="open 1"),
            "5" * 18,
        )
        path = f"device/{record('device', makers=[hidden_maker])}"
        assert error_of(api(bob).patch(path, {"makers": [hidden_maker, dangling_id]})) == (
            422,
            "invalid_value",
            "makers",
        )
        (record_after,) = data_of(
            api(bob).patch(path, {"makers": [hidden_maker, open_maker]}, exclude_reference_link=1)
        )
        assert record_after["makers"] == [hidden_maker, open_maker]
        data_of(api(bob).patch(path, {"makers": [open_maker]}))
        assert error_of(api(bob).patch(path, {"makers": [open_maker, hidden_maker]})) == (
            422,
            "invalid_value",
            "makers",
        )

    def test_lists_keep_order_without_duplicates(self, maker: Table, bob: User):
        first_maker, second_maker = record("maker", name="open 1"), record("maker", name="open 2")
        for body_value in (
            [second_maker, first_maker, second_maker],
            f"{second_maker}, {first_maker}",
            [{"value": second_maker}, {"value": first_maker, "link": "x"}],
        ):
            (new_record,) = data_of(api(bob).post("device", {"makers": body_value}, exclude_reference_link=1))
            assert new_record["makers"] == [second_maker, first_maker]
        lamp = new_record["sys_id"]
        (record_after,) = data_of(
            api(bob).patch(f"device/{lamp}", {"makers": [first_maker, second_maker]}, exclude_reference_link=1)
        )
        assert record_after["makers"] == [first_maker, second_maker] and record_after["sys_version"] == 1, (
            "the order is significant"
        )
        assert error_of(api(bob).post("device", {"makers": [first_maker, None]})) == (422, "invalid_value", "makers")
        assert error_of(api(bob).post("device", {"makers": [UNKNOWN_ID] * 5000 + [first_maker]}))[0] == 422
        assert error_of(api(bob).post("device", {"makers": [str(number) for number in range(1001)]}))[0] == 422


class TestDisplayValues:
    @pytest.fixture
    def maker(self, device: Table) -> Table:
        new_table = table("maker")
        field("maker", "name", is_display=True)
        rule("read", "maker", condition="name!=hidden")
        field("device", "maker", target="maker")
        field("device", "makers", "list", target="maker")
        return new_table

    def post_device(self, user: User, body: Any) -> Any:
        return api(user).post("device", body, input_display_value=1, exclude_reference_link=1)

    def test_references_accept_display_values(self, maker: Table, bob: User):
        acme, other_maker = record("maker", name="Acme"), record("maker", name="Other")
        (new_record,) = data_of(self.post_device(bob, {"maker": "Acme", "makers": ["Other", "Acme"]}))
        assert (new_record["maker"], new_record["makers"]) == (acme, [other_maker, acme])
        lamp = new_record["sys_id"]
        response = api(bob).patch(f"device/{lamp}", {"maker": "Other"}, input_display_value="true", display_value=1)
        assert data_of(response)[0]["maker"]["display_value"] == "Other"
        assert data_of(self.post_device(bob, {"maker": None, "makers": None}))[0]["maker"] is None
        assert error_of(api(bob).post("device", {"maker": "Acme"})) == (422, "invalid_value", "maker"), (
            "the parameter is required"
        )

    def test_ambiguous_unreadable_and_missing_names_are_refused_alike(self, maker: Table, bob: User):  # B30
        for name in ("twice", "twice", "hidden"):
            record("maker", name=name)
        for field_name, as_value in (("maker", lambda value: value), ("makers", lambda value: [value])):
            names = ("twice", "hidden", "nobody", record("maker", name="Acme"))
            responses = [self.post_device(bob, {field_name: as_value(name)}) for name in names]
            assert {error_of(response) for response in responses} == {(422, "invalid_value", field_name)}
            assert len({response.content for response in responses}) == 1
            assert "Expected the display value of exactly one record" in responses[0].json()["errors"][0]["message"]

    def test_error_for_a_name_mentions_the_missing_parameter(self, maker: Table, bob: User):
        record("maker", name="acme3")
        (error,) = api(bob).post("device", {"maker": "acme3"}).json()["errors"]
        assert "sysparm_input_display_value=1" in error["message"]
        assert self.post_device(bob, {"maker": "acme3"}).status_code == 201

    def test_empty_names_are_ignored(self, device: Table, bob: User):
        table("slot")  # without a display column
        open_table("slot")
        field("device", "slots", "list", target="slot")
        slot = record("slot")
        assert data_of(self.post_device(bob, {"slots": []}))[0]["slots"] is None
        (new_record,) = data_of(self.post_device(bob, {"slots": [{"value": slot}]}))
        path = f"device/{new_record['sys_id']}"
        for display_value in ("all", "1"):
            (shown_record,) = data_of(api(bob).get(path, display_value=display_value, fields="slots"))
            (record_after,) = data_of(
                api(bob).patch(path, shown_record, input_display_value=1, exclude_reference_link=1)
            )
            assert (record_after["slots"], record_after["sys_version"]) == ([slot], 0)
        assert error_of(self.post_device(bob, {"slots": ["a name"]})) == (422, "invalid_value", "slots")

    def test_too_many_names_are_refused(self, maker: Table, bob: User):
        response = self.post_device(bob, {"makers": [f"n{number}" for number in range(1_001)]})
        assert error_of(response) == (422, "invalid_value", "makers") and b"at most 1000" in response.content

    def test_hidden_name_matches_nothing(self, maker: Table, bob: User):
        record("maker", name="Acme")
        rule("read", "maker", "name", roles=["auditor"])
        assert error_of(self.post_device(bob, {"maker": "Acme"})) == (422, "invalid_value", "maker")
        assert self.post_device(grant(bob, "auditor"), {"maker": "Acme"}).status_code == 201

    def test_choices_accept_labels(self, device: Table, bob: User):
        field("device", "state", choices={"1": "New", "2": "In progress", "a": "Twice", "b": "twice"})
        for label, value in (("New", "1"), ("in PROGRESS", "2"), ("Twice", "a"), ("twice", "b"), (None, None)):
            assert column_values(self.post_device(bob, {"state": label}), "state") == [value]
        invalid_values: tuple[Any, ...] = ("1", "TWICE", "none", True)
        for label in invalid_values:
            assert error_of(self.post_device(bob, {"state": label})) == (422, "invalid_value", "state"), label

    def test_booleans_accept_display_values(self, device: Table, bob: User):
        field("device", "active", "boolean")
        for label, value in (("Yes", True), ("no", False), (True, True), ("false", False), ("", None)):
            assert column_values(self.post_device(bob, {"active": label}), "active") == [value]
        assert error_of(self.post_device(bob, {"active": "maybe"})) == (422, "invalid_value", "active")

    @pytest.mark.parametrize(
        ("type_name", "value", "display_value"),
        [
            ("choice", "1", "First one"),
            ("choice", "gone", "gone"),
            ("boolean", True, "Yes"),
            ("boolean", False, "No"),
            ("date", "2024-05-09", "9 May 2024"),
            ("datetime", "2024-05-09 13:45:00+00", "9 May 2024 13:45:00"),
            ("integer", 5, "5"),
            ("decimal", "1.50", "1.50"),
        ],
    )
    def test_display_values_of_every_type_can_be_sent(
        self, device: Table, bob: User, type_name: str, value: Any, display_value: str
    ):
        table("slot")
        field(
            "slot",
            "it",
            type_name,
            is_display=True,
            choices={"1": "First one", "2": "one"} if type_name == "choice" else None,
        )
        rule("read", "slot")
        field("device", "slot", target="slot")
        field("device", "slots", "list", target="slot")
        slot = record("slot", it=value)
        (new_record,) = data_of(
            api(bob).post("device", {"slot": slot, "slots": [slot]}, display_value=1, fields="sys_id,slot,slots")
        )
        assert new_record["slot"]["display_value"] == new_record["slots"][0]["display_value"] == display_value

        path, shown_values = f"device/{new_record['sys_id']}", {name: new_record[name] for name in ("slot", "slots")}
        assert api(bob).patch(path, {"slot": None, "slots": None}).status_code == 200
        for body in (shown_values, {"slot": display_value, "slots": [display_value]}):
            (record_after,) = data_of(api(bob).patch(path, body, input_display_value=1, exclude_reference_link=1))
            assert (record_after["slot"], record_after["slots"]) == (slot, [slot])

    def test_ambiguous_name_is_refused(self, device: Table, bob: User):
        table("slot")
        field("slot", "it", choices={"1": "Same", "2": "Same"}, is_display=True)
        rule("read", "slot")
        field("device", "slot", target="slot")
        record("slot", it="1")
        assert self.post_device(bob, {"slot": "Same"}).status_code == 201
        assert error_of(self.post_device(bob, {"slot": "1"})) == (422, "invalid_value", "slot"), (
            "1 is read as a label, not as a value"
        )
        record("slot", it="2")
        assert error_of(self.post_device(bob, {"slot": "Same"})) == (422, "invalid_value", "slot")

    def test_dates_accept_display_values(self, device: Table, bob: User):
        field("device", "day", "date")
        field("device", "at", "datetime")
        (record,) = data_of(self.post_device(bob, {"day": "9 May 2024", "at": "9 May 2024 13:45:00"}))
        assert (record["day"], record["at"]) == ("2024-05-09", "2024-05-09 13:45:00")
        assert error_of(self.post_device(bob, {"day": "31 Feb 2024"})) == (422, "invalid_value", "day")
        assert error_of(api(bob).post("device", {"day": "9 May 2024"})) == (422, "invalid_value", "day")

    def test_invalid_parameter_is_refused(self, device: Table, bob: User):
        response = api(bob).post("device", {}, input_display_value="perhaps")
        assert error_of(response) == (400, "invalid_parameter", "sysparm_input_display_value")
        assert stored_values("name") == []


class TestDisplayedReferences:
    @pytest.fixture
    def lamp(self, db: Any) -> str:
        """A lamp that refers to a maker that Bob may not read, and to one without a name."""
        table("maker")
        field("maker", "name")
        rule("read", "maker", condition="name!=hidden^ORnameISEMPTY")
        table("lamp")
        field("lamp", "name")
        field("lamp", "maker", target="maker")
        field("lamp", "other", target="maker")
        open_table("lamp")
        return record("lamp", name="Lamp", maker=record("maker", name="hidden"), other=record("maker"))

    def test_reference_without_a_name_is_kept(self, lamp: str, bob: User):
        path, options = f"lamp/{lamp}", {"display_value": 1, "fields": "name,maker,other"}
        (record_before,) = data_of(api(bob).get(path, **options))
        values_before = query_rows("SELECT maker, other FROM records.lamp")
        assert record_before["maker"]["display_value"] is None and record_before["other"]["display_value"] is None

        (record_after,) = data_of(api(bob).patch(path, record_before, input_display_value=1, **options))
        assert record_after == record_before and query_rows("SELECT maker, other FROM records.lamp") == values_before

    @pytest.mark.parametrize("value", [{}, {"link": "x"}])
    def test_malformed_reference_does_not_clear_it(self, lamp: str, bob: User, value: Any):
        values_before = query_rows("SELECT maker, other FROM records.lamp")
        response = api(bob).patch(f"lamp/{lamp}", {"other": value}, input_display_value=1)
        assert error_of(response) == (422, "invalid_value", "other")
        assert query_rows("SELECT maker, other FROM records.lamp") == values_before


class TestUniqueValues:
    def test_duplicate_value_is_refused_and_named(self, device: Table, bob: User):  # B17
        field("device", "code", is_unique=True)
        data_of(api(bob).post("device", {"code": "a1"}))
        (other_record,) = data_of(api(bob).post("device", {"code": "b"}))
        assert error_of(api(bob).post("device", {"code": "A1"})) == (409, "duplicate", "code"), "case is ignored"
        for send in (api(bob).patch, api(bob).put):
            assert error_of(send(f"device/{other_record['sys_id']}", {"code": "a1"})) == (409, "duplicate", "code")
        assert stored_values("code") == ["a1", "b"]
        assert [api(bob).post("device", body).status_code for body in ({}, {"code": None})] == [201, 201]

    def test_column_that_was_not_sent_is_not_named(self, device: Table, bob: User):  # B17
        field("device", "code", is_unique=True, default_value="usual")
        rule("read", "device", "code", roles=["auditor"])
        data_of(api(bob).post("device", {}))
        response = api(bob).post("device", {"name": "x"})
        assert error_of(response) == (409, "duplicate", None)
        assert b"usual" not in response.content and b"code" not in response.content.replace(b'"code": "duplicate"', b"")

    def test_unique_column_of_the_parent_applies_to_children(self, device: Table, bob: User):
        field("device", "code", "integer", is_unique=True)
        table("laptop", parent="device")
        data_of(api(bob).post("device", {"code": 1}))
        assert error_of(api(bob).post("laptop", {"code": 1})) == (409, "duplicate", "code")
        assert len(stored_values("code")) == 1


class TestFormattedText:
    def test_scripts_are_removed_and_formatting_is_kept(self, device: Table, bob: User):  # B72
        field("device", "html", "wysiwyg")
        body = '<p onclick="x()">Hi <b>you</b><script>alert(1)</script><a href="javascript:x()">l</a></p>'
        (record,) = data_of(api(bob).post("device", {"html": body}))
        assert "<b>you</b>" in record["html"]
        for fragment in ("script", "onclick", "alert"):
            assert fragment not in record["html"]
        assert stored_values("html") == [record["html"]]

    def test_formatted_text_is_searched_by_its_plain_text(self, device: Table, bob: User):
        field("device", "html", "wysiwyg")
        (record,) = data_of(api(bob).post("device", {"html": "<p>Fish <b>&amp;</b> chips</p>"}))
        assert column_values(api(bob).get("device", query="htmlLIKEfish & chips"), "sys_id") == [record["sys_id"]]
        for query in ("htmlLIKE<b>", "htmlLIKE&amp;"):
            assert data_of(api(bob).get("device", query=query)) == []
        data_of(api(bob).patch(f"device/{record['sys_id']}", {"html": "<i>Soup</i>"}))
        assert data_of(api(bob).get("device", query="htmlLIKEfish")) == []
        assert len(data_of(api(bob).get("device", query="html=soup"))) == 1
        data_of(api(bob).patch(f"device/{record['sys_id']}", {"html": None}))
        assert len(data_of(api(bob).get("device", query="htmlISEMPTY"))) == 1

    def test_length_is_that_of_the_plain_text(self, device: Table, bob: User):
        field("device", "html", "wysiwyg", max_length=5)
        assert api(bob).post("device", {"html": "<p><b>12345</b></p>"}).status_code == 201
        assert error_of(api(bob).post("device", {"html": "<b>123456</b>"})) == (422, "invalid_value", "html")


class TestSecrets:
    @pytest.fixture
    def lamp(self, device: Table, bob: User) -> str:
        field("device", "pin", "password")
        field("device", "token", "secret")
        response = api(bob).post("device", {"name": "Lamp", "pin": "pin-123", "token": "token-456"})
        assert b"pin-123" not in response.content and b"token-456" not in response.content
        return str(data_of(response)[0]["sys_id"])

    def test_secrets_are_stored_hashed_or_encrypted(self, lamp: str):  # B28
        (pin,), (token,) = stored_values("pin"), stored_values("token")
        assert "pin-123" not in pin and "token-456" not in token
        assert check_password("pin-123", pin) and encryption.decrypt(token) == "token-456"

    def test_secrets_are_never_shown(self, lamp: str, alice: User, bob: User):  # B28
        for user in (alice, bob):
            (stored_record,) = data_of(api(user).get(f"device/{lamp}"))
            assert not {"pin", "token"} & stored_record.keys()
            for name in ("pin", "token"):
                for params in ({"fields": name}, {"query": f"{name}ISNOTEMPTY"}, {"query": f"ORDERBY{name}"}):
                    assert error_of(api(user).get("device", **params))[0] == 400

    def test_secrets_are_cleared_only_by_null(self, lamp: str, bob: User):
        (token_before,) = stored_values("token")
        response = api(bob).patch(f"device/{lamp}", {"pin": "other-1", "token": "other-2"})
        assert b"other" not in response.content and data_of(response)[0]["sys_version"] == 1
        assert check_password("other-1", stored_values("pin")[0]) and stored_values("token") != [token_before]
        invalid_values: tuple[Any, ...] = ("", 5, True, [], {"value": "x"})
        for value in invalid_values:
            assert error_of(api(bob).patch(f"device/{lamp}", {"pin": value})) == (422, "invalid_value", "pin")
            assert error_of(api(bob).patch(f"device/{lamp}", {"token": value})) == (422, "invalid_value", "token")
        data_of(api(bob).patch(f"device/{lamp}", {"pin": None, "token": None}))
        assert (stored_values("pin"), stored_values("token")) == ([None], [None])

    def test_guessing_a_secret_reveals_nothing(self, lamp: str, bob: User):
        """A response must not reveal whether the value is the same."""
        for version, guess in enumerate(("guess", "guess", "pin-123"), 1):
            assert data_of(api(bob).patch(f"device/{lamp}", {"pin": guess}))[0]["sys_version"] == version

    def test_secrets_are_not_in_the_deletion_log(self, lamp: str, bob: User):
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        log_entry = DeletionLogEntry.objects.get(record_id=lamp)
        assert not {"pin", "token"} & log_entry.payload.keys() and log_entry.payload["name"] == "Lamp"
