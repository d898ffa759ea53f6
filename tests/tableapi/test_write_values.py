"""Values of particular columns: references, display values, unique values, formatted text, secrets."""

from typing import Any

import pytest
from django.contrib.auth.hashers import check_password

from accounts.models import User
from system import encryption
from system.models import DeletionLogEntry
from tableapi.models import Table
from tests.tableapi.designs import ask
from tests.tableapi.world import api, column, data, failed, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db

NOWHERE = "123456789012345678"


@pytest.fixture
def device(db: Any) -> Table:
    """A table with a name that anybody may do anything with."""
    created = table("device")
    field("device", "name")
    open_table("device")
    return created


def stored(name: str) -> list[Any]:
    return [row[0] for row in ask(f'SELECT "{name}" FROM records.device ORDER BY sys_id')]


class TestReferences:
    @pytest.fixture
    def maker(self, device: Table) -> Table:
        """Referred to by a device; who is no auditor reads only the open ones."""
        created = table("maker")
        field("maker", "name", is_display=True)
        rule("read", "maker", condition="nameSTARTSWITHopen")
        rule("read", "maker", roles=["auditor"])
        field("device", "maker", to="maker")
        field("device", "makers", "list", to="maker")
        return created

    def test_missing_and_unreadable_references_are_refused_alike(self, maker: Table, bob: User):  # B30
        output, hidden = record("maker", name="open"), record("maker", name="closed")
        lamp = record("device", name="Lamp")
        for name, wrap in (("maker", str), ("makers", lambda value: [output, value])):
            responses = [
                send(path, {name: wrap(sys_id)})
                for sys_id in (hidden, NOWHERE)
                for send, path in (
                    (api(bob).post, "device"),
                    (api(bob).patch, f"device/{lamp}"),
                    (api(bob).put, f"device/{lamp}"),
                )
            ]
            assert {failed(response) for response in responses} == {(422, "invalid_value", name)}
            assert len({response.content for response in responses}) == 1
            assert "that you can read" in responses[0].json()["errors"][0]["message"]
            assert api(bob).patch(f"device/{lamp}", {name: wrap(output)}).status_code == 200
            assert api(grant(bob, "auditor")).patch(f"device/{lamp}", {name: wrap(hidden)}).status_code == 200
            bob.grants.all().delete()
        assert len(stored("name")) == 1

    def test_stored_reference_can_stay(self, maker: Table, bob: User):
        hidden = record("maker", name="closed")
        lamp = record("device", name="Lamp", maker=hidden, makers=[hidden])
        (read,) = data(api(bob).get(f"device/{lamp}"))
        assert read["maker"]["value"] == hidden
        (after,) = data(api(bob).put(f"device/{lamp}", read | {"name": "x"}))
        assert (after["maker"], after["name"]) == (read["maker"], "x")
        assert api(bob).patch(f"device/{lamp}", {"maker": None, "makers": []}).status_code == 200

    def test_reference_to_a_table_unknown_to_the_caller(self, device: Table, bob: User):  # B30
        table("secret_things")
        field("device", "thing", to="secret_things")
        thing = record("secret_things")
        responses = [api(bob).post("device", {"thing": sys_id}) for sys_id in (thing, NOWHERE)]
        assert failed(responses[0]) == (422, "invalid_value", "thing") and responses[0].content == responses[1].content

    def test_reference_to_a_child_record(self, maker: Table, bob: User):
        table("factory", parent="maker")
        created = record("factory", name="open")
        assert data(api(bob).post("device", {"maker": created}))[0]["maker"]["value"] == created

    def test_reference_to_itself_and_to_system_records(self, device: Table, bob: User):
        field("device", "part_of", to="device")
        field("device", "owner", to="user")
        lamp = record("device", name="Lamp")
        (after,) = data(api(bob).patch(f"device/{lamp}", {"part_of": lamp, "owner": bob.pk}))
        assert after["part_of"]["value"] == lamp and after["owner"]["value"] == bob.pk
        assert failed(api(bob).patch(f"device/{lamp}", {"owner": lamp})) == (422, "invalid_value", "owner")

    @pytest.mark.parametrize("value", [True, 1.5, {}, {"value": []}, ["x"], "a b", "é", "x" * 33, "1'--"])
    def test_invalid_ids_are_refused(self, maker: Table, bob: User, value: Any):
        for name, given in (("maker", value), ("makers", [value])):
            assert failed(api(bob).post("device", {name: given})) == (422, "invalid_value", name)

    def test_adding_to_a_list_keeps_unreadable_items(self, maker: Table, bob: User):
        hidden, actual, dangling = record("maker", name="hidden 1"), record("maker", name="open 1"), "5" * 18
        path = f"device/{record('device', makers=[hidden])}"
        assert failed(api(bob).patch(path, {"makers": [hidden, dangling]})) == (422, "invalid_value", "makers")
        (after,) = data(api(bob).patch(path, {"makers": [hidden, actual]}, exclude_reference_link=1))
        assert after["makers"] == [hidden, actual]
        data(api(bob).patch(path, {"makers": [actual]}))
        assert failed(api(bob).patch(path, {"makers": [actual, hidden]})) == (422, "invalid_value", "makers")

    def test_lists_keep_order_without_duplicates(self, maker: Table, bob: User):
        one, two = record("maker", name="open 1"), record("maker", name="open 2")
        for given in ([two, one, two], f"{two}, {one}", [{"value": two}, {"value": one, "link": "x"}]):
            (row,) = data(api(bob).post("device", {"makers": given}, exclude_reference_link=1))
            assert row["makers"] == [two, one]
        lamp = row["sys_id"]
        (after,) = data(api(bob).patch(f"device/{lamp}", {"makers": [one, two]}, exclude_reference_link=1))
        assert after["makers"] == [one, two] and after["sys_version"] == 1, "another order is another value"
        assert failed(api(bob).post("device", {"makers": [one, None]})) == (422, "invalid_value", "makers")
        assert failed(api(bob).post("device", {"makers": [NOWHERE] * 5000 + [one]}))[0] == 422
        assert failed(api(bob).post("device", {"makers": [str(n) for n in range(1001)]}))[0] == 422


class TestDisplayValues:
    @pytest.fixture
    def maker(self, device: Table) -> Table:
        created = table("maker")
        field("maker", "name", is_display=True)
        rule("read", "maker", condition="name!=hidden")
        field("device", "maker", to="maker")
        field("device", "makers", "list", to="maker")
        return created

    def send(self, who: User, body: Any) -> Any:
        return api(who).post("device", body, input_display_value=1, exclude_reference_link=1)

    def test_references_accept_display_values(self, maker: Table, bob: User):
        acme, other = record("maker", name="Acme"), record("maker", name="Other")
        (row,) = data(self.send(bob, {"maker": "Acme", "makers": ["Other", "Acme"]}))
        assert (row["maker"], row["makers"]) == (acme, [other, acme])
        lamp = row["sys_id"]
        response = api(bob).patch(f"device/{lamp}", {"maker": "Other"}, input_display_value="true", display_value=1)
        assert data(response)[0]["maker"]["display_value"] == "Other"
        assert data(self.send(bob, {"maker": None, "makers": None}))[0]["maker"] is None
        assert failed(api(bob).post("device", {"maker": "Acme"})) == (422, "invalid_value", "maker"), (
            "not without asking"
        )

    def test_ambiguous_unreadable_and_missing_names_are_refused_alike(self, maker: Table, bob: User):  # B30
        for name in ("twice", "twice", "hidden"):
            record("maker", name=name)
        for field_name, wrap in (("maker", lambda value: value), ("makers", lambda value: [value])):
            names = ("twice", "hidden", "nobody", record("maker", name="Acme"))
            responses = [self.send(bob, {field_name: wrap(name)}) for name in names]
            assert {failed(response) for response in responses} == {(422, "invalid_value", field_name)}
            assert len({response.content for response in responses}) == 1
            assert "Expected the display value of exactly one record" in responses[0].json()["errors"][0]["message"]

    def test_name_without_the_parameter_names_the_parameter(self, maker: Table, bob: User):
        record("maker", name="acme3")
        (error,) = api(bob).post("device", {"maker": "acme3"}).json()["errors"]
        assert "sysparm_input_display_value=1" in error["message"]
        assert self.send(bob, {"maker": "acme3"}).status_code == 201

    def test_empty_names_are_ignored(self, device: Table, bob: User):
        table("slot")  # none of its columns is shown
        open_table("slot")
        field("device", "slots", "list", to="slot")
        slot = record("slot")
        assert data(self.send(bob, {"slots": []}))[0]["slots"] is None
        (row,) = data(self.send(bob, {"slots": [{"value": slot}]}))
        path = f"device/{row['sys_id']}"
        for name in ("all", "1"):
            (seen,) = data(api(bob).get(path, display_value=name, fields="slots"))
            (after,) = data(api(bob).patch(path, seen, input_display_value=1, exclude_reference_link=1))
            assert (after["slots"], after["sys_version"]) == ([slot], 0)
        assert failed(self.send(bob, {"slots": ["a name"]})) == (422, "invalid_value", "slots")

    def test_too_many_names_are_refused(self, maker: Table, bob: User):
        response = self.send(bob, {"makers": [f"n{number}" for number in range(1_001)]})
        assert failed(response) == (422, "invalid_value", "makers") and b"at most 1000" in response.content

    def test_hidden_name_matches_nothing(self, maker: Table, bob: User):
        record("maker", name="Acme")
        rule("read", "maker", "name", roles=["auditor"])
        assert failed(self.send(bob, {"maker": "Acme"})) == (422, "invalid_value", "maker")
        assert self.send(grant(bob, "auditor"), {"maker": "Acme"}).status_code == 201

    def test_choices_accept_labels(self, device: Table, bob: User):
        field("device", "state", choices={"1": "New", "2": "In progress", "a": "Twice", "b": "twice"})
        for given, value in (("New", "1"), ("in PROGRESS", "2"), ("Twice", "a"), ("twice", "b"), (None, None)):
            assert column(self.send(bob, {"state": given}), "state") == [value]
        wrong: tuple[Any, ...] = ("1", "TWICE", "none", True)
        for given in wrong:
            assert failed(self.send(bob, {"state": given})) == (422, "invalid_value", "state"), given

    def test_booleans_accept_display_values(self, device: Table, bob: User):
        field("device", "active", "boolean")
        for given, value in (("Yes", True), ("no", False), (True, True), ("false", False), ("", None)):
            assert column(self.send(bob, {"active": given}), "active") == [value]
        assert failed(self.send(bob, {"active": "maybe"})) == (422, "invalid_value", "active")

    @pytest.mark.parametrize(
        ("type_name", "value", "shown"),
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
        self, device: Table, bob: User, type_name: str, value: Any, shown: str
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
        field("device", "slot", to="slot")
        field("device", "slots", "list", to="slot")
        slot = record("slot", it=value)
        (row,) = data(
            api(bob).post("device", {"slot": slot, "slots": [slot]}, display_value=1, fields="sys_id,slot,slots")
        )
        assert row["slot"]["display_value"] == row["slots"][0]["display_value"] == shown

        path, sent = f"device/{row['sys_id']}", {name: row[name] for name in ("slot", "slots")}
        assert api(bob).patch(path, {"slot": None, "slots": None}).status_code == 200
        for body in (sent, {"slot": shown, "slots": [shown]}):
            (after,) = data(api(bob).patch(path, body, input_display_value=1, exclude_reference_link=1))
            assert (after["slot"], after["slots"]) == (slot, [slot])

    def test_ambiguous_name_is_refused(self, device: Table, bob: User):
        table("slot")
        field("slot", "it", choices={"1": "Same", "2": "Same"}, is_display=True)
        rule("read", "slot")
        field("device", "slot", to="slot")
        record("slot", it="1")
        assert self.send(bob, {"slot": "Same"}).status_code == 201
        assert failed(self.send(bob, {"slot": "1"})) == (422, "invalid_value", "slot"), "no value, a label is meant"
        record("slot", it="2")
        assert failed(self.send(bob, {"slot": "Same"})) == (422, "invalid_value", "slot")

    def test_dates_accept_display_values(self, device: Table, bob: User):
        field("device", "day", "date")
        field("device", "at", "datetime")
        (record,) = data(self.send(bob, {"day": "9 May 2024", "at": "9 May 2024 13:45:00"}))
        assert (record["day"], record["at"]) == ("2024-05-09", "2024-05-09 13:45:00")
        assert failed(self.send(bob, {"day": "31 Feb 2024"})) == (422, "invalid_value", "day")
        assert failed(api(bob).post("device", {"day": "9 May 2024"})) == (422, "invalid_value", "day")

    def test_parameter_accepts_1_and_0(self, device: Table, bob: User):
        response = api(bob).post("device", {}, input_display_value="perhaps")
        assert failed(response) == (400, "invalid_parameter", "sysparm_input_display_value")
        assert stored("name") == []


class TestReferencesSentBackAsShown:
    @pytest.fixture
    def lamp(self, db: Any) -> str:
        """Made by a maker that Bob may not read, and by one without a name."""
        table("maker")
        field("maker", "name")
        rule("read", "maker", condition="name!=hidden^ORnameISEMPTY")
        table("lamp")
        field("lamp", "name")
        field("lamp", "maker", to="maker")
        field("lamp", "other", to="maker")
        open_table("lamp")
        return record("lamp", name="Lamp", maker=record("maker", name="hidden"), other=record("maker"))

    def test_reference_without_a_name_is_kept(self, lamp: str, bob: User):
        path, result = f"lamp/{lamp}", {"display_value": 1, "fields": "name,maker,other"}
        (before,) = data(api(bob).get(path, **result))
        stored = ask("SELECT maker, other FROM records.lamp")
        assert before["maker"]["display_value"] is None and before["other"]["display_value"] is None

        (after,) = data(api(bob).patch(path, before, input_display_value=1, **result))
        assert after == before and ask("SELECT maker, other FROM records.lamp") == stored

    @pytest.mark.parametrize("value", [{}, {"link": "x"}])
    def test_malformed_reference_does_not_clear_it(self, lamp: str, bob: User, value: Any):
        stored = ask("SELECT maker, other FROM records.lamp")
        response = api(bob).patch(f"lamp/{lamp}", {"other": value}, input_display_value=1)
        assert failed(response) == (422, "invalid_value", "other")
        assert ask("SELECT maker, other FROM records.lamp") == stored


class TestUniqueValues:
    def test_duplicate_value_is_refused_and_named(self, device: Table, bob: User):  # B17
        field("device", "code", is_unique=True)
        data(api(bob).post("device", {"code": "a1"}))
        (other,) = data(api(bob).post("device", {"code": "b"}))
        assert failed(api(bob).post("device", {"code": "A1"})) == (409, "duplicate", "code"), "case does not count"
        for send in (api(bob).patch, api(bob).put):
            assert failed(send(f"device/{other['sys_id']}", {"code": "a1"})) == (409, "duplicate", "code")
        assert stored("code") == ["a1", "b"]
        assert [api(bob).post("device", body).status_code for body in ({}, {"code": None})] == [201, 201]

    def test_column_that_was_not_sent_is_not_named(self, device: Table, bob: User):  # B17
        field("device", "code", is_unique=True, default_value="usual")
        rule("read", "device", "code", roles=["auditor"])
        data(api(bob).post("device", {}))
        response = api(bob).post("device", {"name": "x"})
        assert failed(response) == (409, "duplicate", None)
        assert b"usual" not in response.content and b"code" not in response.content.replace(b'"code": "duplicate"', b"")

    def test_unique_column_of_the_parent_applies_to_children(self, device: Table, bob: User):
        field("device", "code", "integer", is_unique=True)
        table("laptop", parent="device")
        data(api(bob).post("device", {"code": 1}))
        assert failed(api(bob).post("laptop", {"code": 1})) == (409, "duplicate", "code")
        assert len(stored("code")) == 1


class TestFormattedText:
    def test_scripts_are_removed_and_formatting_is_kept(self, device: Table, bob: User):  # B72
        field("device", "html", "wysiwyg")
        sent = '<p onclick="x()">Hi <b>you</b><script>alert(1)</script><a href="javascript:x()">l</a></p>'
        (record,) = data(api(bob).post("device", {"html": sent}))
        assert "<b>you</b>" in record["html"]
        for bad in ("script", "onclick", "alert"):
            assert bad not in record["html"]
        assert stored("html") == [record["html"]]

    def test_formatted_text_is_searched_by_its_plain_text(self, device: Table, bob: User):
        field("device", "html", "wysiwyg")
        (record,) = data(api(bob).post("device", {"html": "<p>Fish <b>&amp;</b> chips</p>"}))
        assert column(api(bob).get("device", query="htmlLIKEfish & chips"), "sys_id") == [record["sys_id"]]
        for query in ("htmlLIKE<b>", "htmlLIKE&amp;"):
            assert data(api(bob).get("device", query=query)) == []
        data(api(bob).patch(f"device/{record['sys_id']}", {"html": "<i>Soup</i>"}))
        assert data(api(bob).get("device", query="htmlLIKEfish")) == []
        assert len(data(api(bob).get("device", query="html=soup"))) == 1
        data(api(bob).patch(f"device/{record['sys_id']}", {"html": None}))
        assert len(data(api(bob).get("device", query="htmlISEMPTY"))) == 1

    def test_length_is_that_of_the_plain_text(self, device: Table, bob: User):
        field("device", "html", "wysiwyg", max_length=5)
        assert api(bob).post("device", {"html": "<p><b>12345</b></p>"}).status_code == 201
        assert failed(api(bob).post("device", {"html": "<b>123456</b>"})) == (422, "invalid_value", "html")


class TestSecrets:
    @pytest.fixture
    def lamp(self, device: Table, bob: User) -> str:
        field("device", "pin", "password")
        field("device", "token", "secret")
        response = api(bob).post("device", {"name": "Lamp", "pin": "pin-123", "token": "token-456"})
        assert b"pin-123" not in response.content and b"token-456" not in response.content
        return str(data(response)[0]["sys_id"])

    def test_secrets_are_stored_hashed_or_encrypted(self, lamp: str):  # B28
        (pin,), (token,) = stored("pin"), stored("token")
        assert "pin-123" not in pin and "token-456" not in token
        assert check_password("pin-123", pin) and encryption.decrypt(token) == "token-456"

    def test_secrets_are_never_shown(self, lamp: str, alice: User, bob: User):  # B28
        for who in (alice, bob):
            (read,) = data(api(who).get(f"device/{lamp}"))
            assert not {"pin", "token"} & read.keys()
            for name in ("pin", "token"):
                for shape in ({"fields": name}, {"query": f"{name}ISNOTEMPTY"}, {"query": f"ORDERBY{name}"}):
                    assert failed(api(who).get("device", **shape))[0] == 400

    def test_secrets_are_cleared_only_by_null(self, lamp: str, bob: User):
        (before,) = stored("token")
        response = api(bob).patch(f"device/{lamp}", {"pin": "other-1", "token": "other-2"})
        assert b"other" not in response.content and data(response)[0]["sys_version"] == 1
        assert check_password("other-1", stored("pin")[0]) and stored("token") != [before]
        wrong: tuple[Any, ...] = ("", 5, True, [], {"value": "x"})
        for value in wrong:
            assert failed(api(bob).patch(f"device/{lamp}", {"pin": value})) == (422, "invalid_value", "pin")
            assert failed(api(bob).patch(f"device/{lamp}", {"token": value})) == (422, "invalid_value", "token")
        data(api(bob).patch(f"device/{lamp}", {"pin": None, "token": None}))
        assert (stored("pin"), stored("token")) == ([None], [None])

    def test_guessing_a_secret_reveals_nothing(self, lamp: str, bob: User):
        """Whether the value is the same must not show."""
        rows = [data(api(bob).patch(f"device/{lamp}", {"pin": value}))[0] for value in ("guess", "guess", "pin-123")]
        assert [row["sys_version"] for row in rows] == [1, 2, 3]

    def test_secrets_are_not_in_the_deletion_log(self, lamp: str, bob: User):
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        entry = DeletionLogEntry.objects.get(record_id=lamp)
        assert not {"pin", "token"} & entry.payload.keys() and entry.payload["name"] == "Lamp"
