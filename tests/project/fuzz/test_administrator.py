"""Runs schemathesis and its checks against the product, with the OpenAPI document of an administrator."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from tests.config.stack import Stack, manage
from tests.support.nightly import choose_seed, scaled_count

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

REQUEST_COUNT = 5_000
# Tables whose records may be changed and deleted. For other tables, ids are generated, because the test needs the
# existing account, key, rules and tables.
CHANGEABLE_TABLES = ("company", "service", "sys_group", "task", "sys_schedule", "sys_indication")
PATHS_WITH_ENTRIES = ("/rest/v1/batch", "/rest/v1/bulk/")
load_all_checks()
EXCLUDED_CHECKS = [
    CHECKS.get_one(name)
    for name in (
        "ignored_auth",  # counts as failed sign-ins, so it gets 429; see tests/project/access
        "positive_data_acceptance",  # a schema cannot say which ids exist, or which queries fit a column
    )
]
# Not for an empty parameter, which counts as omitted, a parameter that only exports read, and requests that return a
# status for each entry.
INVALID_DATA_CHECK = CHECKS.get_one("negative_data_rejection")


@dataclass(frozen=True)
class AdministratorClient:
    stack: Stack
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def existing_ids(self, path: str) -> list[str]:
        table = path.removeprefix("/rest/v1/table/").removesuffix("/{sys_id}")
        if table not in CHANGEABLE_TABLES:
            return []
        response = self.stack.call(
            "GET", f"/rest/v1/table/{table}?sysparm_fields=sys_id&sysparm_limit=100", key=self.key
        )
        return [record["sys_id"] for record in response.body["data"]]

    def send_many(self, operation: Any, count: int, seed: int) -> None:
        ids = self.existing_ids(operation.path)

        @hypothesis.seed(seed)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
            | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
            id_index=hypothesis.strategies.integers(0, 199),
        )
        def send_case(case: Any, id_index: int) -> None:
            if id_index < len(ids) and case.meta.generation.mode is GenerationMode.POSITIVE:
                case.path_parameters = {**case.path_parameters, "sys_id": ids[id_index]}
            query = case.query or {}
            may_accept = (
                "" in query.values()
                or "sysparm_keep_formulas" in query
                or operation.path.startswith(PATHS_WITH_ENTRIES)
            )
            case.call_and_validate(
                headers=self.headers,
                excluded_checks=[*EXCLUDED_CHECKS, *([INVALID_DATA_CHECK] if may_accept else [])],
            )

        send_case()


@pytest.fixture(scope="module")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdministratorClient]:
    stack = Stack(tmp_path_factory.mktemp("fuzzed"), SVC_WEB_PROCESSES="2")
    try:
        stack.start().wait_until_up()
        yield AdministratorClient(stack, manage("key", "admin", "fuzz", env=stack.env).stdout.strip())
    finally:
        if stack.process.poll() is None:
            stack.stop()
        stack.end()


def test_responses_conform_to_the_document_of_the_administrator(administrator: AdministratorClient):
    schema = schemathesis.openapi.from_url(administrator.stack.url + "/api/schema", headers=administrator.headers)
    operation_results: Any = schema.get_all_operations()
    operations = [operation.ok() for operation in operation_results]
    assert len(operations) > 100
    seed = choose_seed()

    for operation in operations:
        administrator.send_many(operation, -(-scaled_count(REQUEST_COUNT) // len(operations)), seed)

    assert administrator.stack.call("GET", "/api/me", key=administrator.key).status == 200
    assert "Traceback" not in administrator.stack.output
