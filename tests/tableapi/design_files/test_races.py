"""Two files applied at once wait for each other, and the second finds what the first one did."""

from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Column, Table
from tests.tableapi.test_design_races import check_consistency
from tests.tableapi.test_write_concurrency import result_of, run_in_thread
from tests.tableapi.world import api

from .designs import apply

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_files_at_once_are_applied_one_after_the_other(alice: User, transactional_db: Any):
    designer = api(alice, credential="key")
    columns = [{"name": f"c{number}", "label": "C", "type": "string"} for number in range(5)]
    design = {"tables": [{"name": "device", "label": "Device", "number_prefix": "DEV", "columns": columns}]}
    jobs = [run_in_thread(partial(apply, designer, design)) for _ in range(3)]
    responses = [result_of(job) for job in jobs]
    # A request that waits too long for the lock is asked to try again.
    assert {response.status_code for response in responses} <= {200, 503}
    assert sorted(len(response.json()["data"]) for response in responses if response.status_code == 200)[-1] == 6
    assert Table.objects.filter(name="device").count() == 1 and Column.objects.filter(table__name="device").count() == 6
    check_consistency()
