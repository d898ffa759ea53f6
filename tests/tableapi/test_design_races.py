"""Several people design at once, with separate connections: nothing fails, and the catalogue equals the database."""

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
from tests.tableapi.designs import ask, types_of
from tests.tableapi.test_write_concurrency import PATIENCE_S, beside, result, settle, stopping
from tests.tableapi.world import Api, api, data, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

# The seeds of random designs.
SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 40))]
SYSTEM = {"sys_id"}
OF_ROOTS = {
    *SYSTEM, "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version", "sys_db_table_id"
}  # fmt: skip
REFUSALS = {400, 404, 409, 422}


@pytest.fixture
def device(transactional_db: Any) -> Table:
    created = table("device")
    field("device", "name")
    open_table("device")
    for number in range(3):
        record("device", name=str(number))
    return created


@pytest.fixture
def designer(alice: User) -> Api:
    return api(alice, by="key")


def check_database() -> None:
    """The catalogue equals the database, and its indexes can be built."""
    tables = {row.name: row for row in Table.objects.filter(is_system=False)}
    stored = {name for (name,) in ask("SELECT tablename FROM pg_tables WHERE schemaname = 'records'")}
    assert stored == tables.keys()
    for name, row in tables.items():
        columns = list(Column.objects.filter(table=row))
        expected = OF_ROOTS if row.parent is None else SYSTEM
        expected = expected | {column.physical for column in columns}
        expected |= {plain_text_column_name(column.pk) for column in columns if column.column_type.is_html}
        assert types_of(name).keys() == expected
    sequences = {name for (name,) in ask("SELECT sequencename FROM pg_sequences WHERE schemaname = 'records'")}
    assert sequences == {physical_names.sequence_name(row.pk) for row in tables.values() if row.number_prefix}
    index_builder.build_indexes()
    assert (index_builder.missing_indexes(), index_builder.surplus_indexes()) == ([], [])


def column_of(owner: Table, name: str, **about: Any) -> dict[str, Any]:
    return {"table": owner.pk, "name": name, "label": name, "type": "string", **about}


def statuses(jobs: Sequence[Callable[[], Any]]) -> list[int]:
    running = [beside(job) for job in jobs]
    return [result(job).status_code for job in running]


def test_same_column_added_several_times_exists_once(device: Table, designer: Api):
    job = partial(designer.post, "sys_db_column", column_of(device, "colour"))
    assert sorted(statuses([job] * 4)) == [201, 422, 422, 422]
    check_database()


def test_same_table_created_several_times_exists_once(designer: Api, transactional_db: Any):
    job = partial(designer.post, "sys_db_table", {"name": "ticket", "label": "Ticket", "number_prefix": "TCK"})
    assert sorted(statuses([job] * 4)) == [201, 409, 409, 409]
    check_database()


def test_column_deleted_several_times_is_deleted_once(device: Table, designer: Api):
    colour = field("device", "colour")
    job = partial(designer.delete, f"sys_db_column/{colour.pk}")
    assert sorted(statuses([job] * 3)) == [200, 404, 404]
    check_database()


def test_column_changed_and_deleted_at_once(device: Table, designer: Api):
    for number in range(3):
        colour = field("device", f"colour{number}", "text")
        path = f"sys_db_column/{colour.pk}"
        changed, deleted, also = statuses([
            partial(designer.patch, path, {"type": "wysiwyg", "is_indexed": True}), partial(designer.delete, path),
            partial(designer.patch, path, {"label": "Other"}),
        ])  # fmt: skip
        assert deleted == 200 and {changed, also} <= {200, 404}
    check_database()


def test_table_deleted_while_a_column_is_added(device: Table, designer: Api):
    for number in range(3):
        plan = table(f"plan{number}")
        deleted, *added = statuses([
            partial(designer.delete, f"sys_db_table/{plan.pk}"),
            partial(designer.post, "sys_db_column", column_of(plan, "a")),
            partial(designer.post, "sys_db_column", column_of(plan, "b", type="reference", reference_table=device.pk)),
        ])  # fmt: skip
        assert deleted == 200 and set(added) <= {201, 422}
    check_database()


def test_table_deleted_while_another_extends_or_refers_to_it(device: Table, designer: Api):
    for number in range(3):
        plan = table(f"plan{number}")
        deleted, extended, referred = statuses([
            partial(designer.delete, f"sys_db_table/{plan.pk}"),
            partial(designer.post, "sys_db_table", {"name": f"sub{number}", "label": "Sub", "parent": plan.pk}),
            partial(designer.post, "sys_db_column",
                    column_of(device, f"plan{number}", type="reference", reference_table=plan.pk)),
        ])  # fmt: skip
        assert (deleted == 200) == ({extended, referred} == {422}) and deleted in (200, 409)
    check_database()


def test_two_columns_become_the_display_column_at_once(device: Table, designer: Api):
    """Each of them takes it from the other."""
    columns = [field("device", name) for name in ("a", "b", "c")]
    jobs = [partial(designer.patch, f"sys_db_column/{column.pk}", {"is_display": True}) for column in columns]
    assert statuses(jobs) == [200, 200, 200]
    assert Column.objects.filter(table=device, is_display=True).count() == 1
    check_database()


def test_changes_wait_for_each_other_before_they_lock_a_record(device: Table, designer: Api, monkeypatch: Any):
    """Otherwise the second would hold the record that the first needs, and both would wait."""
    first, second = field("device", "a", is_display=True), field("device", "b")
    reached, go = stopping(monkeypatch, saving, "validate")
    taking = beside(partial(designer.patch, f"sys_db_column/{second.pk}", {"is_display": True}))
    assert reached.wait(PATIENCE_S)
    changing = beside(partial(designer.patch, f"sys_db_column/{first.pk}", {"label": "Other"}))
    assert settle(changing), "it waits for its turn"
    go.set()
    assert (result(taking).status_code, result(changing).status_code) == (200, 200)
    assert [first.refreshed().is_display, first.refreshed().label] == [False, "Other"]


class Designs:
    """Random changes of a small world, as several people would make them."""

    def __init__(self, seed: int, designer: Api, device: Table, lamp: str) -> None:
        self.random, self.designer, self.device, self.lamp = random.Random(seed), designer, device, lamp

    def jobs(self, count: int) -> list[Callable[[], Any]]:
        ways = (self.add, self.add, self.change, self.drop, self.create, self.remove, self.build, self.write, self.read)
        return [self.random.choice(ways)() for _ in range(count)]

    def any_table(self) -> Table:
        return self.random.choice(list(Table.objects.filter(is_system=False).order_by("pk")))

    def any_column(self) -> Column:
        return self.random.choice(list(Column.objects.filter(table__is_system=False).order_by("pk")))

    def add(self) -> Callable[[], Any]:
        about: dict[str, Any] = {"type": self.random.choice(["string", "text", "wysiwyg", "integer", "json"])}
        if self.random.random() < 0.3:
            about = {"type": "reference", "reference_table": self.any_table().pk}
        elif self.random.random() < 0.5:
            about["is_indexed"] = True
        name = self.random.choice("abcdef")
        return partial(self.designer.post, "sys_db_column", column_of(self.any_table(), name, **about))

    def change(self) -> Callable[[], Any]:
        change = self.random.choice([
            {"is_display": True}, {"is_indexed": True}, {"is_indexed": False}, {"is_unique": True}, {"label": "Other"},
            {"type": "wysiwyg"}, {"max_length": 10},
        ])  # fmt: skip
        return partial(self.designer.patch, f"sys_db_column/{self.any_column().pk}", change)

    def drop(self) -> Callable[[], Any]:
        return partial(self.designer.delete, f"sys_db_column/{self.any_column().pk}")

    def create(self) -> Callable[[], Any]:
        about = {"name": self.random.choice(["plan", "desk", "room"]), "label": "Some"}
        about |= self.random.choice([{}, {"parent": self.device.pk}, {"number_prefix": "ABC"}])
        return partial(self.designer.post, "sys_db_table", about)

    def remove(self) -> Callable[[], Any]:
        return partial(self.designer.delete, f"sys_db_table/{self.any_table().pk}")

    def build(self) -> Callable[[], Any]:
        return lambda: (index_builder.build_indexes(), None)[1]

    def write(self) -> Callable[[], Any]:
        body = {name: self.random.choice([None, "1", "22"]) for name in self.random.sample("abcdef", 2)} | {"name": "x"}
        return self.random.choice([
            partial(self.designer.post, "device", body), partial(self.designer.patch, f"device/{self.lamp}", body),
            partial(self.designer.put, f"device/{self.lamp}", body),
        ])  # fmt: skip

    def read(self) -> Callable[[], Any]:
        return partial(self.designer.get, "device", query="aISNOTEMPTY^ORDERBYb", fields="name,a,b,c.name")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_designs_at_once(device: Table, designer: Api, seed: int):
    designs = Designs(seed, designer, device, record("device", name="lamp"))
    for _ in range(3):
        running = [beside(job) for job in designs.jobs(6)]
        responses = [response for job in running if (response := result(job)) is not None]
        assert {response.status_code for response in responses} <= {200, 201, *REFUSALS}
        check_database()
        assert data(designer.get("device"))
