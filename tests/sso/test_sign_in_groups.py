"""Group memberships that a sign-in adds and removes."""

import json
import re
from typing import Any

import pytest

from accounts.models import Group, User, UserGroup
from config.env import ROOT
from sso.models import OidcSetting, SignIn
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, make_active_connection

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider, enable_user_creation=True, update_data_when_login=True, group_claim="org.teams")
    for name in ("a", "b", "closed"):
        Group.objects.create(name=name, grantable_by_sign_in=name != "closed")
    return Browser(provider)


def sign_in(browser: Browser, teams: Any) -> set[str]:
    browser.provider.claims = {"org": {"teams": teams}}
    assert Browser(browser.provider).sign_in().status_code == 302
    return groups_of("ann")


def groups_of(login: str, **conditions: Any) -> set[str]:
    return set(UserGroup.objects.filter(user__login=login, **conditions).values_list("group__name", flat=True))


def test_memberships_follow_the_claim(browser: Browser):
    source = OidcSetting.objects.get().pk

    assert sign_in(browser, ["a", "missing", "closed", "A"]) == {"a"} == groups_of("ann", source=source)
    assert not Group.objects.filter(name__in=("missing", "A")).exists()
    assert "Added to groups: a." in SignIn.objects.latest("sys_id").detail
    assert sign_in(browser, ["b"]) == {"b"}
    assert sign_in(browser, "a") == {"a"}
    assert sign_in(browser, []) == set()


def test_documented_claim_adds_the_documented_group(browser: Browser):
    page = (ROOT / "docs/reference/single-sign-on.md").read_text()
    example = re.search(
        r"For example, \*Group claim\* is `([\w.]+)`.*?```json\n(.*?)```.*?the group `Network`", page, re.S
    )
    assert example is not None
    path, claims = example.groups()
    OidcSetting.objects.update(group_claim=path)
    Group.objects.create(name="Network", grantable_by_sign_in=True)

    browser.provider.claims = json.loads(claims)
    assert browser.sign_in().status_code == 302
    assert groups_of("ann") == {"Network"}
    assert not Group.objects.filter(name="Night shift").exists()


@pytest.mark.parametrize("teams", [None, 7, {"a": 1}, [["a"], None, 7, {"a": 1}, " a", "a\u200b"]])
def test_invalid_claims_add_no_group(teams: Any, browser: Browser):
    assert sign_in(browser, teams) == set()


def test_invalid_names_are_counted_in_the_log(browser: Browser):
    sign_in(browser, ["a", 7, " b"])
    assert "Ignored invalid group names: 2." in SignIn.objects.latest("sys_id").detail


def test_other_memberships_stay(browser: Browser):
    sign_in(browser, [])
    ann = User.objects.get(login="ann")
    UserGroup.objects.create(user=ann, group=Group.objects.get(name="a"))
    UserGroup.objects.create(user=ann, group=Group.objects.get(name="closed"), source="another")

    assert sign_in(browser, ["a", "b"]) == {"a", "b", "closed"}
    assert sign_in(browser, []) == {"a", "closed"}
    assert groups_of("ann", source="") == {"a"}


def test_group_that_is_no_longer_grantable_loses_its_members(browser: Browser):
    assert sign_in(browser, ["a"]) == {"a"}
    Group.objects.filter(name="a").update(grantable_by_sign_in=False)
    assert sign_in(browser, ["a"]) == set()
    Group.objects.filter(name="a").update(grantable_by_sign_in=True, active=False)
    assert sign_in(browser, ["a"]) == set()


def test_without_a_claim_nothing_is_mapped(browser: Browser):
    assert sign_in(browser, ["a"]) == {"a"}
    OidcSetting.objects.update(group_claim="")
    assert sign_in(browser, ["b"]) == {"a"}
    OidcSetting.objects.update(group_claim="org.teams", update_data_when_login=False)
    assert sign_in(browser, ["b"]) == {"a"}
