"""Two people who edit the same record: nothing typed is lost, and neither overwrites the other unseen."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.tableapi import world
from workspace.forms import submission
from workspace.pages import record


@pytest.fixture
def lamp(db: Any) -> str:
    world.table("maker")
    world.field("maker", "name", is_display=True)
    world.table("device")
    world.field("device", "name", is_display=True)
    world.field("device", "state", choices={"1": "New", "2": "Done"})
    world.field("device", "notes", "text")
    world.field("device", "maker", target="maker")
    world.open_table("maker")
    world.open_table("device")
    return world.record("device", name="Lamp", state="1", notes="old")


def hidden_values(page: Any) -> dict[str, str]:
    html = page.content.decode()
    return {
        name: unescape(value) for name, value in re.findall(r'type="hidden" name="(_[a-z]+)" value="([^"]*)"', html)
    }


def radio_values(page: Any, name: str) -> list[str]:
    return [
        unescape(value) for value in re.findall(rf'type="radio" name="{name}" value="([^"]*)"', page.content.decode())
    ]


def stored(user: User, sys_id: str) -> dict[str, Any]:
    (values,) = world.data_of(world.api(user).get(f"device/{sys_id}", exclude_reference_link=1))
    return dict(values)


def test_both_values_of_a_column_are_shown_and_one_is_chosen(lamp: str, as_bob: Client, bob: User, alice: User) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    assert world.api(alice).patch(f"device/{lamp}", {"notes": "hers", "state": "2"}).status_code == 200

    page = as_bob.post(url, hidden_values(opened) | {"name": "His name", "state": "1", "notes": "his\r\nlines"})

    assert page.status_code == 412 and stored(bob, lamp)["name"] == "Lamp"
    assert radio_values(page, "notes") == ["his\nlines", "hers"]
    html = page.content.decode()
    assert 'value="His name"' in html  # only he changed it
    assert '<option value="2" selected>' in html and "Changed by the other person." in html  # only she did
    saved = as_bob.post(url, hidden_values(page) | {"name": "His name", "state": "2", "notes": "hers"})
    assert saved.status_code == 302
    assert [stored(bob, lamp)[name] for name in ("name", "state", "notes")] == ["His name", "2", "hers"]


def test_a_third_change_is_noticed_too(lamp: str, as_bob: Client, alice: User) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    world.api(alice).patch(f"device/{lamp}", {"notes": "hers"})
    page = as_bob.post(url, hidden_values(opened) | {"notes": "his"})
    world.api(alice).patch(f"device/{lamp}", {"notes": "hers again"})
    page = as_bob.post(url, hidden_values(page) | {"notes": "his"})
    assert page.status_code == 412 and radio_values(page, "notes") == ["his", "hers again"]


def test_equal_changes_are_no_choice(lamp: str, as_bob: Client, alice: User) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    world.api(alice).patch(f"device/{lamp}", {"notes": "same"})
    page = as_bob.post(url, hidden_values(opened) | {"notes": "same", "name": "His"})
    assert page.status_code == 412 and radio_values(page, "notes") == []


def test_a_reference_is_chosen_by_its_display_value(lamp: str, as_bob: Client, bob: User, alice: User) -> None:
    acme, zeta = (world.record("maker", name=name) for name in ("Acme", "Zeta"))
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    world.api(alice).patch(f"device/{lamp}", {"maker": acme})
    page = as_bob.post(url, hidden_values(opened) | {"maker": zeta})
    assert radio_values(page, "maker") == [zeta, acme]
    assert "Acme" in page.content.decode() and "Zeta" in page.content.decode()
    assert as_bob.post(url, hidden_values(page) | {"maker": acme}).status_code == 302
    assert stored(bob, lamp)["maker"] == acme


def test_an_unchanged_form_does_not_conflict(lamp: str, as_bob: Client, bob: User, alice: User) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    world.api(alice).patch(f"device/{lamp}", {"notes": "hers"})
    assert as_bob.post(url, hidden_values(opened) | {"notes": "old", "name": "Lamp"}).status_code == 302
    assert stored(bob, lamp)["notes"] == "hers"


def test_a_change_between_the_comparison_and_the_write_is_a_conflict(
    lamp: str, as_bob: Client, bob: User, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    read_change = submission.read_change

    def read_and_interfere(*args: Any) -> Any:
        change = read_change(*args)
        world.api(alice).patch(f"device/{lamp}", {"notes": "hers"})
        return change

    monkeypatch.setattr(record, "read_change", read_and_interfere)
    page = as_bob.post(url, hidden_values(opened) | {"notes": "his"})
    assert page.status_code == 412 and radio_values(page, "notes") == ["his", "hers"]
    assert stored(bob, lamp)["notes"] == "hers"


def test_a_conflict_is_still_noticed_after_a_refused_save(lamp: str, as_bob: Client, alice: User) -> None:
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    refused = as_bob.post(url, hidden_values(opened) | {"notes": "his", "state": "9"})
    assert refused.status_code == 422 and hidden_values(refused) == hidden_values(opened)
    world.api(alice).patch(f"device/{lamp}", {"notes": "hers"})
    page = as_bob.post(url, hidden_values(refused) | {"notes": "his", "state": "2"})
    assert page.status_code == 412 and radio_values(page, "notes") == ["his", "hers"]


def test_a_conflict_is_noticed_by_people_who_cannot_read_the_version(
    lamp: str, as_bob: Client, bob: User, alice: User
) -> None:
    world.rule("read", "device", "sys_version", roles=["nobody"])
    url = f"/tables/device/{lamp}/"
    opened = as_bob.get(url)
    assert "_version" not in hidden_values(opened)
    world.api(alice).patch(f"device/{lamp}", {"notes": "hers"})
    page = as_bob.post(url, hidden_values(opened) | {"notes": "his", "name": "Lamp"})
    assert page.status_code == 412 and radio_values(page, "notes") == ["his", "hers"]
    assert as_bob.post(url, hidden_values(page) | {"notes": "his"}).status_code == 302
    assert stored(bob, lamp)["notes"] == "his"


def test_a_json_value_replaces_the_stored_one(lamp: str, as_bob: Client, bob: User) -> None:
    world.field("device", "data", "json")
    sys_id = world.record("device", name="Lamp", data={"a": 1, "b": None})
    assert as_bob.post(f"/tables/device/{sys_id}/", {"data": '{"b": null, "c": 2}'}).status_code == 302
    assert stored(bob, sys_id)["data"] == {"b": None, "c": 2}


@pytest.mark.parametrize("base", ["", "{", "[]", '{"notes": 1}', '{"notes": ["x", 5]}', "[" * 100_000])
def test_a_damaged_base_is_ignored(lamp: str, as_bob: Client, bob: User, base: str) -> None:
    response = as_bob.post(f"/tables/device/{lamp}/", {"notes": "his", "_base": base, "_version": "x"})
    assert response.status_code == 302 and stored(bob, lamp)["notes"] == "his"
