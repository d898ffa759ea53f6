"""No request of a ServiceNow client distinguishes two databases that differ only in what the caller may not read."""

from collections.abc import Iterator
from random import Random
from unittest.mock import patch

import pytest

from tableapi.catalogue.definitions import Table
from tableapi.servicenow import statistics, views
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs, runner
from tests.tableapi.noninterference.programs import ProgramGenerator, Step
from tests.tableapi.noninterference.runner import (
    find_difference,
    insert_world,
    query_string,
    send_to_view,
    stored_tables,
)

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 100, 5_000


class ServiceNowGenerator(ProgramGenerator):
    """Adds related records and the parameters of the dialect."""

    def random_condition(self, table: Table) -> str:
        if self.random.random() < 0.5:
            return super().random_condition(table)
        related, column = self.random_related_column(table)
        inner = super().random_condition(related)
        if self.random.random() < 0.4:
            return f"JOIN{table.name}.sys_id={related.name}.{column}!{inner}"
        comparison = self.random.choice([">=1", ">=2", "=0", "=1", "<2", "!=1", ">0"])
        inner = f"^{inner}" if self.random.random() < 0.6 else ""
        return f"RLQUERY{related.name}.{column},{comparison}{inner}^ENDRLQUERY"

    def random_related_column(self, table: Table) -> tuple[Table, str]:
        """Return a column of another table, which mostly refers to records of this one."""
        references = [
            (related, column.name)
            for related in self.tables
            for column in related.columns.values()
            if column.reference in table.family or column.reference in table.lineage
        ]
        if references and self.random.random() < 0.9:
            return self.random.choice(references)
        return self.random.choice(self.tables), self.random.choice(["sys_id", "nosuch"])

    def random_list_step(self, table: Table) -> Step:
        step = super().random_list_step(table)
        if self.random.random() < 0.3:
            step.params["sysparm_offset"] = self.random.choice(["1", "2"])
        if self.random.random() < 0.3:
            step.params["sysparm_no_count"] = "true"
        return step


@pytest.fixture(autouse=True)
def requests_of_the_dialect() -> Iterator[None]:
    with patch.multiple(
        runner,
        LIST_VIEW=views.TableView.as_view(),
        RECORD_VIEW=views.RecordView.as_view(),
        API_PATH=views.TABLE_PATH,
        ProgramGenerator=ServiceNowGenerator,
    ):
        yield


def test_hidden_data_changes_no_response() -> None:
    for seed in range(PAIR_COUNT):
        difference = find_difference(seed)
        assert difference is None, f"seed {seed}\n{difference}"


@pytest.mark.nightly
def test_hidden_data_changes_no_response_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        difference = find_difference(seed)
        assert difference is None, f"seed {seed}\n{difference}"


def statistics_parameters(generator: ProgramGenerator, table: Table) -> dict[str, str]:
    random = generator.random
    parameters = {"sysparm_count": "true", "sysparm_query": generator.random_query(table)}
    parameters[f"sysparm_{random.choice(statistics.FUNCTIONS)}_fields"] = generator.random_field_path(table)
    if random.random() < 0.7:
        parameters["sysparm_group_by"] = generator.random_field_path(table)
        parameters["sysparm_display_value"] = random.choice(["", "true", "all"])
    if random.random() < 0.3:
        parameters["sysparm_having"] = f"count^{generator.random_field_path(table)}^>^{random.choice('01')}"
    if random.random() < 0.3:
        parameters["sysparm_orderby"] = f"SUM^{generator.random_field_path(table)}"
    return parameters


def test_hidden_data_changes_no_statistics() -> None:
    for seed in range(PAIR_COUNT // 2):
        random = Random(seed)
        pair = pairs.make_pair(random)
        generator = ServiceNowGenerator(random, pair)
        requests = [
            (table.name, statistics_parameters(generator, table)) for table in random.choices(generator.tables, k=8)
        ]
        answers = []
        with stored_tables(pair):
            for world in (pair.first, pair.second):
                with rollback_afterwards(), active_catalogue(pair.catalogue):
                    insert_world(world)
                    answers.append(
                        [
                            send_to_view(views.StatisticsView, pair.caller, query_string(parameters), table=table)
                            for table, parameters in requests
                        ]
                    )
        for request, first, second in zip(requests, *answers, strict=True):
            assert (first.status_code, first.content) == (second.status_code, second.content), f"{seed}: {request}"
            assert first.status_code in (200, 400)
