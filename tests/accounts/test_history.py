"""Changes of users are in the history, deletions in the deletion log; neither contains secrets."""

import re
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils.html import strip_tags

from accounts.authentication import access_keys
from accounts.models import AccessKey, Group, Role, User, UserGroup, UserRole
from system.admin_site.site import HistoryAdmin
from system.models import DeletionLogEntry
from system.records.record import Record
from tests.accounts.admin_forms import submit_user_form, user_page_path
from tests.accounts.callers import sign_in
from tests.accounts.test_admin_access import RECORD_FACTORIES, admin_paths
from tests.support.users import PASSWORD
from tests.tableapi.world import api, data_of


def stored_text(model: Any) -> str:
    """All rows of a table as text, including columns that the model does not define."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(json_agg(to_json(stored))::text, '') FROM \"{model._meta.db_table}\" AS stored"
        )
        return str(cursor.fetchone()[0])


HISTORY_MODELS = [model for model in apps.get_models() if hasattr(model, "history_type")]


def test_change_records_columns_and_user(as_alice: Client, alice: User, bob: User):
    submit_user_form(as_alice, bob, first_name="Bob")
    first_entry, second_entry = bob.history.order_by("history_id")

    assert (first_entry.history_type, second_entry.history_type) == ("+", "~")
    assert second_entry.history_user_id == alice.pk
    assert [(delta.field, delta.old, delta.new) for delta in second_entry.diff_against(first_entry).changes] == [
        ("first_name", "", "Bob")
    ]


def test_grants_and_memberships_have_history(as_alice: Client, alice: User, bob: User):
    submit_user_form(as_alice, bob, granted_roles=("itil",))
    submit_user_form(as_alice, bob, revoked_roles=("itil",))
    UserGroup.objects.create(user=bob, group=Group.objects.create(name="Desk"))

    entries = UserRole.history.filter(user_id=bob.pk).order_by("history_id")
    assert list(entries.values_list("history_type", "history_user_id")) == [("+", alice.pk), ("-", alice.pk)]
    assert UserGroup.history.count() == Group.history.count() == 1


def test_history_of_a_user_has_no_password(bob: User):
    bob.change_password("another horse 43")
    sign_in("bob", "another horse 43")
    columns = {field.name for field in User.history.model._meta.get_fields()}

    assert "password" not in columns and "last_login" not in columns
    assert "login" in columns


@pytest.mark.parametrize("model", HISTORY_MODELS, ids=lambda model: model.__name__)
def test_no_history_has_a_column_for_a_secret(model: Any):
    secrets = set(getattr(model.instance_type, "secret_columns", ()))

    assert not {field.name for field in model._meta.get_fields()} & {*secrets, "password", "digest"}


def test_history_models_are_collected():
    assert len(HISTORY_MODELS) >= 6


def test_deletion_log_has_no_password(as_alice: Client, alice: User, bob: User):
    password_hash = bob.password
    as_alice.post(user_page_path(bob.pk, "delete"), {"post": "yes"})
    entry = DeletionLogEntry.objects.get(table="user")

    assert (entry.record_id, entry.display_value, entry.deleted_by) == (bob.pk, "bob", alice.pk)
    assert entry.payload["login"] == "bob" and "password" not in entry.payload
    assert password_hash not in stored_text(DeletionLogEntry)


def test_cascaded_deletions_are_logged(bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    access_keys.create_login_key(bob)
    digests = list(AccessKey.objects.values_list("digest", flat=True))
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    sign_in("bob")
    bob.delete()

    assert sorted(DeletionLogEntry.objects.values_list("table", flat=True)) == [
        "accounts_access_key",
        "sys_user_role",
        "user",
    ]
    log_text = stored_text(DeletionLogEntry)
    assert '"script"' in log_text
    assert not [digest for digest in digests if digest in log_text]


@pytest.mark.parametrize(
    "model", [model for model in apps.get_models() if issubclass(model, Record)], ids=lambda model: model._meta.label
)
def test_deletion_log_entries_contain_no_secret_columns(model: type[Record]):
    payload_columns = Record.payload(model()).keys()

    assert not payload_columns & {*model.secret_columns, "password", "digest"}
    assert "sys_id" in payload_columns


def test_revoked_key_is_logged_by_its_prefix(as_bob: Client, bob: User):
    secret = access_keys.create_key(bob, "script", expires_at=None)
    key = AccessKey.objects.get()
    as_bob.post(f"/account/keys/{key.pk}/revoke/")
    entry = DeletionLogEntry.objects.get()

    assert (entry.display_value, entry.deleted_by) == (f"script ({secret[:9]}…)", bob.pk)
    assert key.digest not in str(entry.payload) and secret not in str(entry.payload)


def test_history_pages_show_no_password(as_alice: Client, bob: User):
    submit_user_form(as_alice, bob, first_name="Bob")
    as_alice.post(
        user_page_path(bob.pk, "password"), {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    )
    entry_id = bob.history.latest("history_id").history_id
    for path in (user_page_path(bob.pk, "history"), user_page_path(bob.pk, "history", str(entry_id))):
        page = as_alice.get(path)
        assert page.status_code == 200
        assert bob.refreshed().password not in page.content.decode()
        assert bob.password.rpartition("$")[2] not in page.content.decode()


@pytest.mark.parametrize("form", [{"login": "bob", "active": "on"}, {"login": "taken"}, {"_change_history": "1"}, {}])
def test_history_cannot_be_reverted(as_alice: Client, alice: User, bob: User, form: dict[str, str]):
    """The button is hidden. Its URL must refuse too, because it runs none of the checks of the real page."""
    submit_user_form(as_alice, bob, first_name="Bob")
    oldest_entry_id = bob.history.earliest("history_id").history_id
    for user, entry_id in ((bob, oldest_entry_id), (alice, alice.history.earliest("history_id").history_id)):
        columns_before = User.objects.values().get(pk=user.pk)
        assert as_alice.post(user_page_path(user.pk, "history", str(entry_id)), form).status_code == 403
        assert User.objects.values().get(pk=user.pk) == columns_before


def test_history_pages_of_a_deleted_user_do_not_fail(as_alice: Client, bob: User):
    entry_id = bob.history.earliest("history_id").history_id
    user_id = bob.pk
    bob.delete()

    assert as_alice.get(user_page_path(user_id, "history")).status_code in (200, 404)
    assert as_alice.get(user_page_path(user_id, "history", str(entry_id))).status_code in (200, 404)


@pytest.mark.parametrize("entry_id", ["x", "999999999999999999999", "-1", "0"])
def test_missing_entry_causes_no_server_error(as_alice: Client, bob: User, entry_id: str):
    assert as_alice.get(user_page_path(bob.pk, "history", entry_id)).status_code == 404


TRACKED_MODELS = [label for label in RECORD_FACTORIES if hasattr(apps.get_model(label), "history")]


@pytest.mark.parametrize("label", TRACKED_MODELS)
def test_no_page_changes_a_history_entry(as_alice: Client, label: str):  # X10
    """Not even an administrator can change entries; they are only added."""
    model = apps.get_model(label)
    record = rename(RECORD_FACTORIES[label]())
    record.save()
    entries_before = history_of(record)
    assert len(entries_before) == 2
    # Deleting comes last, because the other actions need the record.
    for path in sorted(admin_paths(model, record.pk), key=lambda path: "delete" in path):
        for form in ({"name": "taken", "login": "taken", "post": "yes"}, {"history_change_reason": "taken"}):
            as_alice.get(path)
            as_alice.post(path, form)

    assert history_of(record)[:2] == entries_before
    assert not model.objects.filter(pk=record.pk).exists() and len(history_of(record)) >= 3, (
        "the deletion added one entry"
    )


def rename(record: Any) -> Any:
    setattr(record, "first_name" if isinstance(record, User) else "name", "Other")
    return record


def history_of(record: Any) -> list[Any]:
    return list(type(record).history.filter(sys_id=record.pk).order_by("history_id").values())


@pytest.mark.parametrize("label", TRACKED_MODELS)
def test_change_fails_if_its_history_cannot_be_written(  # X11
    db: None, label: str, monkeypatch: pytest.MonkeyPatch
):
    record = rename(RECORD_FACTORIES[label]())
    version_before = record.sys_version

    def raise_disk_full(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(type(record).history.model, "save", raise_disk_full)
    for change in (record.save, record.delete):
        with pytest.raises(RuntimeError, match="the disk is full"):
            change()

    assert type(record).objects.get(pk=record.pk).sys_version == version_before and len(history_of(record)) == 1


def shown_entries(browser: Client, path: str) -> list[str]:
    """The lines of a history page, newest first, without their times."""
    (list_html,) = re.findall(r'<ol[^>]*id="change-history">(.*?)</ol>', browser.get(path).content.decode(), re.DOTALL)
    lines = [" ".join(strip_tags(item).split()) for item in list_html.split("</li>\n  \n")]
    return [
        re.sub(r"^(now|\S+ seconds? ago) (· )?", "", item) for item in lines if item
    ]  # without the time of the entry


def test_page_shows_granted_and_revoked_roles_and_groups(as_alice: Client, bob: User):
    group = Group.objects.create(name="Desk")
    submit_user_form(as_alice, bob, granted_roles=("itil", "monitoring"))
    submit_user_form(as_alice, bob, revoked_roles=("itil",))
    UserGroup.objects.create(user=bob, group=group)
    submit_user_form(as_alice, bob, first_name="Bob")
    UserGroup.objects.all().delete()
    group.delete()

    assert shown_entries(as_alice, user_page_path(bob.pk, "history")) == [
        "Group Desk removed by the system",
        "Changed by alice First name: empty → Bob",
        "Group Desk added by the system",
        "Role itil removed by alice",
        "Role monitoring added by alice",
        "Role itil added by alice",
        "Created by the system",
    ]


def test_password_change_is_recorded_without_the_password(as_alice: Client, bob: User):
    bob.change_password("another horse 43")
    bob.set_unusable_password()
    bob.save()
    bob.set_unusable_password()
    bob.save()

    assert shown_entries(as_alice, user_page_path(bob.pk, "history"))[:3] == [
        "Changed by the system The password was removed.",
        "Changed by the system The password was changed.",
        "Created by the system",
    ]


def test_entry_lists_only_changed_columns(bob: User):
    """Columns that another user changed, or that this object did not save, are not listed."""
    changed_user = User.objects.get(pk=bob.pk)
    changed_user.first_name = "Robert"
    changed_user.save()
    bob.last_name = "Never saved"
    bob.change_password("another horse 43")

    last_entry = bob.history.latest()
    assert (last_entry.first_name, last_entry.last_name) == ("Robert", "") and bob.first_name == "Robert"
    changed_user.refresh_from_db()
    changed_user.first_name = ""
    changed_user.save()
    assert bob.history.count() == 4


def test_rehashing_a_password_is_not_a_change(bob: User, settings: Any):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher", *settings.PASSWORD_HASHERS]
    password_hash = bob.password

    assert bob.check_password(PASSWORD) and bob.refreshed().password != password_hash
    assert bob.history.count() == 1


@pytest.mark.parametrize("route", ["page", "api"])
def test_save_without_changes_creates_no_entry(as_alice: Client, alice: User, route: str):
    role = Role.objects.create(name="desk")
    count_before = role.history.count()

    def save_description(description: str) -> None:
        if route == "page":
            form = {"name": "desk", "description": description}
            assert as_alice.post(f"/admin/accounts/role/{role.pk}/change/", form).status_code == 302
        else:
            data_of(api(alice).patch(f"sys_role/{role.pk}", {"description": description}))

    save_description("a")
    assert role.history.count() == count_before + 1
    save_description("a")
    assert role.history.count() == count_before + 1


def test_long_history_is_paged(as_alice: Client, bob: User, monkeypatch: pytest.MonkeyPatch):
    for name in ("itil", "monitoring"):
        submit_user_form(as_alice, bob, granted_roles=(name,))
        submit_user_form(as_alice, bob, first_name=name)
    monkeypatch.setattr(HistoryAdmin, "history_list_per_page", 2)
    pages = [shown_entries(as_alice, f"{user_page_path(bob.pk, 'history')}?p={number}") for number in (1, 2, 3)]

    assert pages == [
        ["Changed by alice First name: itil → monitoring", "Role monitoring added by alice"],
        ["Changed by alice First name: empty → itil", "Role itil added by alice"],
        ["Created by the system"],
    ]


def test_history_shows_deleted_roles_by_name(as_alice: Client, db: None):
    containing_role, deleted_role = (Role.objects.create(name=name) for name in ("desk", "gone"))
    containing_role.contains = [deleted_role.pk, Role.objects.get(name="itil").pk]
    containing_role.save()
    deleted_role.delete()

    entries = shown_entries(as_alice, f"/admin/accounts/role/{containing_role.pk}/history/")
    assert "Changed by the system Contains: [] → [gone, itil]" in entries
