"""Concurrent design changes on separate connections: none fails, and the catalogue equals the database."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tableapi.catalogue.definitions import plain_text_column_name
from tableapi.ddl import physical_names
from tableapi.design import index_builder, saving
from tableapi.models import Column, Table
from tests.tableapi.designs import column_types_of, query_rows
from tests.tableapi.test_write_concurrency import (
    THREAD_TIMEOUT_S,
    paused_call,
    result_of,
    run_in_thread,
    waits_for_lock,
)
from tests.tableapi.world import ApiClient, api, data_of, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 40))]
CHILD_SYSTEM_COLUMNS = {"sys_id"}
ROOT_SYSTEM_COLUMNS = {
    *CHILD_SYSTEM_COLUMNS, "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version",
    "sys_db_table_id",
}  # fmt: skip
REFUSAL_STATUSES = {400, 404, 409, 422}


@pytest.fixture
def device(transactional_db: Any) -> Table:
    new_table = table("device")
    field("device", "name")
    open_table("device")
    for number in range(3):
        record("device", name=str(number))
    return new_table


@pytest.fixture
def designer(alice: User) -> ApiClient:
    return api(alice, credential="key")


def check_consistency() -> None:
    """Check that the catalogue equals the database and that all indexes can be built."""
    tables = {row.name: row for row in Table.objects.filter(is_system=False)}
    stored_tables = {name for (name,) in query_rows("SELECT tablename FROM pg_tables WHERE schemaname = 'records'")}
    assert stored_tables == tables.keys()
    for name, row in tables.items():
        columns = list(Column.objects.filter(table=row))
        expected_columns = ROOT_SYSTEM_COLUMNS if row.parent is None else CHILD_SYSTEM_COLUMNS
        expected_columns = expected_columns | {column.database_name for column in columns}
        expected_columns |= {plain_text_column_name(column.pk) for column in columns if column.column_type.is_html}
        assert column_types_of(name).keys() == expected_columns
    sequences = {name for (name,) in query_rows("SELECT sequencename FROM pg_sequences WHERE schemaname = 'records'")}
    assert sequences == {physical_names.sequence_name(row.pk) for row in tables.values() if row.number_prefix}
    index_builder.build_indexes()
    assert (index_builder.missing_indexes(), index_builder.surplus_indexes()) == ([], [])


def column_body(owner: Table, name: str, **attributes: Any) -> dict[str, Any]:
    return {"table": owner.pk, "name": name, "label": name, "type": "string", **attributes}


def statuses_of(jobs: Sequence[Callable[[], Any]]) -> list[int]:
    threads = [run_in_thread(job) for job in jobs]
    return [result_of(job).status_code for job in threads]


def test_same_column_added_several_times_exists_once(device: Table, designer: ApiClient):
    job = partial(designer.post, "sys_db_column", column_body(device, "colour"))
    assert sorted(statuses_of([job] * 4)) == [201, 422, 422, 422]
    check_consistency()


def test_same_table_created_several_times_exists_once(designer: ApiClient, transactional_db: Any):
    job = partial(designer.post, "sys_db_table", {"name": "ticket", "label": "Ticket", "number_prefix": "TCK"})
    assert sorted(statuses_of([job] * 4)) == [201, 409, 409, 409]
    check_consistency()


def test_column_deleted_several_times_is_deleted_once(device: Table, designer: ApiClient):
    colour_column = field("device", "colour")
    job = partial(designer.delete, f"sys_db_column/{colour_column.pk}")
    assert sorted(statuses_of([job] * 3)) == [200, 404, 404]
    check_consistency()


def test_column_can_be_deleted_while_it_is_changed(device: Table, designer: ApiClient):
    for number in range(3):
        colour_column = field("device", f"colour{number}", "text")
        path = f"sys_db_column/{colour_column.pk}"
        change_status, deletion_status, label_status = statuses_of([
            partial(designer.patch, path, {"type": "wysiwyg", "is_indexed": True}), partial(designer.delete, path),
            partial(designer.patch, path, {"label": "Other"}),
        ])  # fmt: skip
        assert deletion_status == 200 and {change_status, label_status} <= {200, 404}
    check_consistency()


def test_table_can_be_deleted_while_columns_are_added(device: Table, designer: ApiClient):
    for number in range(3):
        plan = table(f"plan{number}")
        deletion_status, *addition_statuses = statuses_of([
            partial(designer.delete, f"sys_db_table/{plan.pk}"),
            partial(designer.post, "sys_db_column", column_body(plan, "a")),
            partial(designer.post, "sys_db_column",
                    column_body(plan, "b", type="reference", reference_table=device.pk)),
        ])  # fmt: skip
        assert deletion_status == 200 and set(addition_statuses) <= {201, 422}
    check_consistency()


def test_table_is_either_deleted_or_used_by_another(device: Table, designer: ApiClient):
    for number in range(3):
        plan = table(f"plan{number}")
        deletion_status, extension_status, reference_status = statuses_of([
            partial(designer.delete, f"sys_db_table/{plan.pk}"),
            partial(designer.post, "sys_db_table", {"name": f"sub{number}", "label": "Sub", "parent": plan.pk}),
            partial(designer.post, "sys_db_column",
                    column_body(device, f"plan{number}", type="reference", reference_table=plan.pk)),
        ])  # fmt: skip
        assert deletion_status == (200 if {extension_status, reference_status} == {422} else 409)
    check_consistency()


def test_concurrent_changes_leave_one_display_column(device: Table, designer: ApiClient):
    """Each change clears `is_display` of the other columns."""
    columns = [field("device", name) for name in ("a", "b", "c")]
    jobs = [partial(designer.patch, f"sys_db_column/{column.pk}", {"is_display": True}) for column in columns]
    assert statuses_of(jobs) == [200, 200, 200]
    assert Column.objects.filter(table=device, is_display=True).count() == 1
    check_consistency()


def test_changes_wait_for_each_other_before_they_lock_a_record(device: Table, designer: ApiClient, monkeypatch: Any):
    """Otherwise, two changes would deadlock on records that the other has locked."""
    first_column, second_column = field("device", "a", is_display=True), field("device", "b")
    is_reached, release = paused_call(monkeypatch, saving, "validate")
    second_change = run_in_thread(partial(designer.patch, f"sys_db_column/{second_column.pk}", {"is_display": True}))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    first_change = run_in_thread(partial(designer.patch, f"sys_db_column/{first_column.pk}", {"label": "Other"}))
    assert waits_for_lock(first_change), "it waits for its turn"
    release.set()
    assert (result_of(second_change).status_code, result_of(first_change).status_code) == (200, 200)
    assert [first_column.refreshed().is_display, first_column.refreshed().label] == [False, "Other"]


class RandomDesigns:
    """Random design changes and requests, as if several callers made them."""

    def __init__(self, seed: int, designer: ApiClient, device: Table, lamp: str) -> None:
        self.random, self.designer, self.device, self.lamp = random.Random(seed), designer, device, lamp

    def random_jobs(self, count: int) -> list[Callable[[], Any]]:
        actions = (
            self.add_column,
            self.add_column,
            self.change_column,
            self.drop_column,
            self.create_table,
            self.drop_table,
            self.build_indexes,
            self.write_record,
            self.read_records,
        )
        return [self.random.choice(actions)() for _ in range(count)]

    def any_table(self) -> Table:
        return self.random.choice(list(Table.objects.filter(is_system=False).order_by("pk")))

    def any_column(self) -> Column:
        return self.random.choice(list(Column.objects.filter(table__is_system=False).order_by("pk")))

    def add_column(self) -> Callable[[], Any]:
        body: dict[str, Any] = {"type": self.random.choice(["string", "text", "wysiwyg", "integer", "json"])}
        if self.random.random() < 0.3:
            body = {"type": "reference", "reference_table": self.any_table().pk}
        elif self.random.random() < 0.5:
            body["is_indexed"] = True
        name = self.random.choice("abcdef")
        return partial(self.designer.post, "sys_db_column", column_body(self.any_table(), name, **body))

    def change_column(self) -> Callable[[], Any]:
        body = self.random.choice([
            {"is_display": True}, {"is_indexed": True}, {"is_indexed": False}, {"is_unique": True}, {"label": "Other"},
            {"type": "wysiwyg"}, {"max_length": 10},
        ])  # fmt: skip
        return partial(self.designer.patch, f"sys_db_column/{self.any_column().pk}", body)

    def drop_column(self) -> Callable[[], Any]:
        return partial(self.designer.delete, f"sys_db_column/{self.any_column().pk}")

    def create_table(self) -> Callable[[], Any]:
        body = {"name": self.random.choice(["plan", "desk", "room"]), "label": "Some"}
        body |= self.random.choice([{}, {"parent": self.device.pk}, {"number_prefix": "ABC"}])
        return partial(self.designer.post, "sys_db_table", body)

    def drop_table(self) -> Callable[[], Any]:
        return partial(self.designer.delete, f"sys_db_table/{self.any_table().pk}")

    def build_indexes(self) -> Callable[[], Any]:
        return lambda: (index_builder.build_indexes(), None)[1]

    def write_record(self) -> Callable[[], Any]:
        body = {name: self.random.choice([None, "1", "22"]) for name in self.random.sample("abcdef", 2)} | {"name": "x"}
        return self.random.choice([
            partial(self.designer.post, "device", body), partial(self.designer.patch, f"device/{self.lamp}", body),
            partial(self.designer.put, f"device/{self.lamp}", body),
        ])  # fmt: skip

    def read_records(self) -> Callable[[], Any]:
        return partial(self.designer.get, "device", query="aISNOTEMPTY^ORDERBYb", fields="name,a,b,c.name")


@pytest.mark.parametrize("seed", SEEDS)
def test_concurrent_random_designs_keep_catalogue_and_database_consistent(
    device: Table, designer: ApiClient, seed: int
):
    random_designs = RandomDesigns(seed, designer, device, record("device", name="lamp"))
    for _ in range(3):
        threads = [run_in_thread(job) for job in random_designs.random_jobs(6)]
        responses = [response for job in threads if (response := result_of(job)) is not None]
        assert {response.status_code for response in responses} <= {200, 201, *REFUSAL_STATUSES}
        check_consistency()
        assert data_of(designer.get("device"))
