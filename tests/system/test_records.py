"""Properties of every record: ids, audit columns, versions, times and the deletion log."""

import re
import threading
import time
from datetime import UTC, datetime

import pytest
from django.db import connection

from accounts.models import Company, Group, User, UserGroup
from system.models import DeletionLogEntry
from system.records import acting_user

pytestmark = pytest.mark.django_db


def test_id_has_eighteen_digits_of_time_and_sequence(db):
    seconds_before = int(time.time())
    company = Company.objects.create(name="One")

    assert re.fullmatch(r"\d{18}", company.sys_id)
    assert seconds_before - 1 <= int(company.sys_id[:10]) <= int(time.time()) + 1


def test_ids_are_unique_and_sort_by_creation(db):
    ids = [Company.objects.create(name=f"Company {number}").sys_id for number in range(50)]

    assert ids == sorted(ids)
    assert len(set(ids)) == 50


def test_every_insert_gets_an_id(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO company (name, active, sys_created_at, sys_updated_at, sys_version) "
            "VALUES ('By SQL', true, now(), now(), 0) RETURNING sys_id"
        )
        assert re.fullmatch(r"\d{18}", cursor.fetchone()[0])
    Company.objects.bulk_create([Company(name="By bulk")])
    assert re.fullmatch(r"\d{18}", Company.objects.get(name="By bulk").sys_id)


def test_sequence_wraps_around(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('svc_sys_id_sequence', 99999999, false)")
    last_company, first_company = Company.objects.create(name="Last"), Company.objects.create(name="First")

    assert last_company.sys_id[10:] == "99999999"
    assert first_company.sys_id[10:] == "00000000"


def test_record_has_creator_and_last_editor(alice: User, bob: User):
    with acting_user.acting_as(alice.pk):
        company = Company.objects.create(name="One")
    with acting_user.acting_as(bob.pk):
        company.name = "Two"
        company.save()

    stored_company = Company.objects.get()
    assert (stored_company.sys_created_by, stored_company.sys_updated_by) == (alice.pk, bob.pk)
    assert stored_company.sys_version == 1
    assert stored_company.sys_created_at < stored_company.sys_updated_at


def test_update_fields_still_updates_audit_columns(alice: User):
    company = Company.objects.create(name="One")
    with acting_user.acting_as(alice.pk):
        company.save(update_fields=["name"])

    assert (Company.objects.get().sys_updated_by, Company.objects.get().sys_version) == (alice.pk, 1)


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_get_different_versions():
    sys_id = Company.objects.create(name="Start").sys_id
    versions: list[int] = []

    def write(number: int) -> None:
        company = Company.objects.get(sys_id=sys_id)
        company.name = f"Writer {number}"
        company.save()
        versions.append(company.sys_version)
        connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(versions) == list(range(1, 9))


def test_times_are_utc_everywhere(alice: User):  # X17
    company = Company.objects.create(name="One")

    with connection.cursor() as cursor:
        cursor.execute("SHOW timezone")
        assert cursor.fetchone() == ("UTC",)
        cursor.execute("SELECT sys_created_at::text FROM company WHERE sys_id = %s", [company.sys_id])
        assert cursor.fetchone()[0].endswith("+00")
    assert Company.objects.get().sys_created_at.tzinfo is not None
    assert abs(Company.objects.get().sys_created_at - datetime.now(UTC)).total_seconds() < 60


def test_database_session_has_a_fixed_search_path(db):  # X13
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ("public",)
        cursor.execute("SELECT proconfig FROM pg_proc WHERE proname = 'svc_new_sys_id'")
        assert cursor.fetchone()[0] == ["search_path=pg_catalog"]


class TestDeletionLog:
    def test_deleted_record_leaves_an_entry(self, alice: User):
        company = Company.objects.create(name="Gone")
        with acting_user.acting_as(alice.pk):
            company.delete()

        entry = DeletionLogEntry.objects.get()
        assert (entry.table, entry.display_value, entry.deleted_by) == ("company", "Gone", alice.pk)
        assert entry.payload["name"] == "Gone"
        assert entry.record_id == entry.payload["sys_id"]

    def test_bulk_and_cascaded_deletions_are_logged(self, bob: User):
        group = Group.objects.create(name="Desk")
        UserGroup.objects.create(user=bob, group=group)
        Company.objects.bulk_create([Company(name="A"), Company(name="B")])
        Company.objects.all().delete()
        bob.delete()

        tables = sorted(DeletionLogEntry.objects.values_list("table", flat=True))
        assert tables == ["company", "company", "sys_user_group", "user"]

    def test_failed_deletion_leaves_no_entry(self, alice: User, monkeypatch: pytest.MonkeyPatch):
        company = Company.objects.create(name="Stays")

        def raise_error(*_: object, **__: object) -> None:
            raise RuntimeError("the log is full")

        monkeypatch.setattr("system.deletion_log.DeletionLogEntry.objects.create", raise_error)
        with pytest.raises(RuntimeError):
            company.delete()

        assert Company.objects.filter(name="Stays").exists()

    def test_clearing_the_deletion_log_is_not_logged(self, db):
        Company.objects.create(name="Gone").delete()
        DeletionLogEntry.objects.all().delete()

        assert DeletionLogEntry.objects.count() == 0
