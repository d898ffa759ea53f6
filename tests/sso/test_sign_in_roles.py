"""Roles that a sign-in grants and revokes; protected roles are never granted."""

from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections, transaction

from accounts.models import Role, User, UserRole
from sso.models import OidcSetting, SignIn
from sso.provisioning import account_changes
from system.models import DeletionLogEntry
from tests.config.stack import eventually
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider, enable_user_creation=True, enable_role_mapping=True, update_data_when_login=True)
    return Browser(provider)


def granted_roles(source: str = UserRole.PROVIDER) -> set[str]:
    return set(UserRole.objects.filter(user__login="ann", source=source).values_list("role__name", flat=True))


def sign_in(browser: Browser, roles: Any) -> set[str]:
    browser.provider.claims = {"roles": roles}
    assert Browser(browser.provider).sign_in().status_code == 302
    return granted_roles()


def last_detail() -> str:
    return SignIn.objects.latest("sys_id").detail


CLAIM_EXAMPLES: list[tuple[dict[str, Any], set[str]]] = [
    ({"roles": ["a", "b"]}, {"a", "b"}),
    ({"groups": ["/a", "b"]}, {"/a", "b"}),
    ({"realm_access": {"roles": ["a"]}}, {"a"}),
    ({"resource_access": {"servicebase": {"roles": ["a"]}, "other": {"roles": ["b"]}}}, {"a"}),
    ({"roles": ["a"], "groups": ["b"], "realm_access": {"roles": ["c"]}}, {"a", "b", "c"}),
    ({"roles": "a"}, {"a"}),
    ({"roles": {"a": 1}}, set()),
    ({"roles": None, "groups": 7, "realm_access": ["a"], "resource_access": {"servicebase": ["a"]}}, set()),
    ({"roles": [["a"], {"b": 1}, None, True, 7, "c"]}, {"c"}),
]


@pytest.mark.parametrize(("claims", "names"), CLAIM_EXAMPLES, ids=[str(claims)[:60] for claims, _ in CLAIM_EXAMPLES])
def test_roles_are_read_from_the_usual_claims(browser: Browser, claims: dict[str, Any], names: set[str]):  # A42
    browser.provider.claims = claims
    assert browser.sign_in().status_code == 302

    assert granted_roles() == names


@pytest.mark.parametrize(
    ("claim_path", "claims"),
    [
        ("org.teams", {"org": {"teams": ["a"]}, "roles": ["b"]}),
        ("https://example.com/roles", {"https://example.com/roles": ["a"], "roles": ["b"]}),
        ("x, resource_access.<client>.roles", {"resource_access": {"servicebase": {"roles": ["a"]}}, "groups": ["b"]}),
    ],
)
def test_the_connection_may_name_the_claim(browser: Browser, claim_path: str, claims: dict[str, Any]):
    OidcSetting.objects.update(role_claim=claim_path)
    browser.provider.claims = claims
    assert browser.sign_in().status_code == 302

    assert granted_roles() == {"a"}


def test_a_missing_role_is_created_and_assigned(browser: Browser):
    """ "A provider role with no matching Role record causes a new Role record to be created and assigned." """
    assert sign_in(browser, ["night shift", "itil"]) == {"night shift", "itil"}

    role = Role.objects.get(name="night shift")
    assert role.grantable_by_sign_in and role.sys_created_by is None
    assert Role.objects.filter(name="itil").count() == 1


PROTECTED_NAMES = [
    "admin",
    "ADMIN",
    "Admin",
    "\uff41\uff44\uff4d\uff49\uff4e",
    "sso_admin",
    "SSO_Admin",
    "collection_admin",
]


@pytest.mark.parametrize("name", PROTECTED_NAMES)
def test_protected_roles_are_not_granted_and_the_sign_in_succeeds(browser: Browser, name: str):  # A51
    assert sign_in(browser, [name, "itil"]) == {"itil"}

    assert f"Ignored roles that a provider cannot grant: {name}" in last_detail()
    assert not User.objects.get(login="ann").is_superuser
    assert not Role.objects.filter(name=name).exists() or name in ("admin", "sso_admin", "collection_admin")


@pytest.mark.parametrize("name", ["admin ", " admin", "admin\n", "admin\u200b", "a\x00b", "", "x" * 101])
def test_invalid_role_names_are_ignored(browser: Browser, name: str):  # A51, A52
    browser.provider.userinfo = {}
    assert sign_in(browser, [name.replace("\x00", "\x01"), "itil"]) == {"itil"}

    assert "Ignored invalid role names: 1." in last_detail()


def test_a_role_that_contains_a_protected_one_is_not_granted_either(browser: Browser):  # A51
    admin = Role.objects.get(name="admin")
    middle_role = Role.objects.create(name="middle", contains=[admin.pk])
    Role.objects.create(name="boss", contains=[middle_role.pk])

    assert sign_in(browser, ["boss", "itil"]) == {"itil"}
    assert not User.objects.get(login="ann").is_superuser


def test_an_administrator_may_make_a_role_grantable(browser: Browser):
    Role.objects.filter(name="collection_admin").update(grantable_by_sign_in=True)

    assert sign_in(browser, ["collection_admin", "COLLECTION_ADMIN", "admin"]) >= {"collection_admin"}
    assert "admin" not in granted_roles()


def test_a_role_may_be_made_grantable_later(browser: Browser):
    sign_in(browser, ["itil"])
    Role.objects.filter(name="itil").update(grantable_by_sign_in=False)

    assert sign_in(browser, ["itil"]) == set()


def test_a_grantable_admin_role_still_requires_approval(browser: Browser):  # A57
    Role.objects.filter(name="admin").update(grantable_by_sign_in=True)
    OidcSetting.objects.update(needs_approval=True)
    browser.provider.claims = {"roles": ["admin"]}

    assert browser.sign_in().status_code == 403
    assert not User.objects.exists()


def test_roles_beyond_two_hundred_are_ignored(browser: Browser):  # A52
    names = sign_in(browser, [f"role {number}" for number in range(300)])

    assert len(names) == 200
    assert "Ignored invalid role names: 100." in last_detail()


TEN_THOUSAND_ROLES = [f"role {number}" for number in range(10_000)]
MEGABYTE_OF_TEXT = "x" * 1024 * 1024


def test_only_two_hundred_of_ten_thousand_roles_are_read(browser: Browser):  # A52
    browser.provider.userinfo = {"roles": TEN_THOUSAND_ROLES}  # too many for a token
    assert browser.sign_in().status_code == 302

    assert granted_roles() == set(TEN_THOUSAND_ROLES[:200])
    assert Role.objects.filter(name__startswith="role ").count() == 200
    assert "Ignored invalid role names: 9800." in last_detail()


def test_a_very_long_role_name_is_ignored(browser: Browser):  # A52
    browser.provider.userinfo = {"roles": [MEGABYTE_OF_TEXT[:200_000], "itil"]}
    assert browser.sign_in().status_code == 302

    assert granted_roles() == {"itil"}
    assert "Ignored invalid role names: 1." in last_detail()


@pytest.mark.parametrize(
    ("claims_source", "roles", "code"),
    [
        ("claims", TEN_THOUSAND_ROLES, "token_form"),
        ("claims", [MEGABYTE_OF_TEXT, "itil"], "token_answer"),
        ("userinfo", [MEGABYTE_OF_TEXT, "itil"], "userinfo_answer"),
    ],
    ids=["10,000 in the token", "1 MB in the token", "1 MB in the userinfo"],
)
def test_a_larger_response_is_refused(browser: Browser, claims_source: str, roles: list[str], code: str):  # A52
    count_before = Role.objects.count()
    setattr(browser.provider, claims_source, {"roles": roles})
    entry = check_refusal(browser.sign_in(), code, 401)

    assert len(entry.detail) < 500
    assert not User.objects.exists() and Role.objects.count() == count_before


def test_a_role_name_with_markup_is_escaped(browser: Browser, as_alice: Any):  # A52
    assert sign_in(browser, ["<script>alert(1)</script>"]) == {"<script>alert(1)</script>"}

    page = as_alice.get("/admin/accounts/role/").content
    assert b"<script>alert" not in page and b"&lt;script&gt;alert" in page


def test_a_dropped_provider_role_is_removed_and_local_grants_are_kept(browser: Browser):  # A53
    sign_in(browser, ["itil", "night shift"])
    user = User.objects.get(login="ann")
    for name in ("itil", "monitoring"):
        UserRole.objects.create(user=user, role=Role.objects.get(name=name))

    assert sign_in(browser, ["day shift"]) == {"day shift"}
    assert granted_roles(UserRole.MANUAL) == {"itil", "monitoring"}
    assert sign_in(browser, []) == set()
    browser.provider.claims = {}
    assert browser.sign_in().status_code == 302
    assert granted_roles(UserRole.MANUAL) == {"itil", "monitoring"}


def test_the_last_administrator_keeps_the_role(browser: Browser):
    Role.objects.filter(name="admin").update(grantable_by_sign_in=True)
    assert sign_in(browser, ["admin"]) == {"admin"}

    assert sign_in(browser, ["itil"]) == {"admin", "itil"}


def test_without_update_roles_are_mapped_only_when_the_account_is_created(browser: Browser):
    OidcSetting.objects.update(update_data_when_login=False)
    assert sign_in(browser, ["itil"]) == {"itil"}
    assert sign_in(browser, ["night shift"]) == {"itil"}


def test_an_existing_account_gets_no_roles_without_update(browser: Browser):
    OidcSetting.objects.update(update_data_when_login=False)
    make_ann()

    assert sign_in(browser, ["itil"]) == set()


def test_without_mapping_nothing_is_granted(browser: Browser):
    OidcSetting.objects.update(enable_role_mapping=False)

    assert sign_in(browser, ["itil", "night shift"]) == set()
    assert not Role.objects.filter(name="night shift").exists()


def test_granted_roles_take_effect_immediately(browser: Browser):
    Role.objects.filter(name="sso_admin").update(grantable_by_sign_in=True)
    browser.provider.claims = {"roles": ["sso_admin"]}
    browser.sign_in()

    assert browser.client.get("/admin/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_concurrent_sign_ins_remove_a_role_once():
    """The second sign-in waits for the first one and finds no grant to remove: the history has one entry."""
    user, night_role = make_user("ann"), Role.objects.create(name="night shift")
    UserRole.objects.create(user=user, role=night_role, source=UserRole.PROVIDER)
    second_thread = Thread(target=lambda: remove_roles(user.pk))
    with transaction.atomic():
        account_changes.sync_provider_roles(user, [])
        second_thread.start()
        eventually(lambda: count_waiting_connections() == 1)
    second_thread.join()

    assert UserRole.history.filter(history_type="-").count() == 1
    assert DeletionLogEntry.objects.filter(table="sys_user_role").count() == 1


def remove_roles(user_id: str) -> None:
    with transaction.atomic():
        account_changes.sync_provider_roles(User.objects.get(pk=user_id), [])
    connections.close_all()


def count_waiting_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction would always see the same statistics
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return int(cursor.fetchone()[0])
