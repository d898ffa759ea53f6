"""The short form of `./run bench soak`: callers of all kinds while components are killed, and the state afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from bench.soak.run import SoakResult, run_soak, running_product
from bench.soak.tally import SETTLING_TIME_S, Tally
from bench.soak.workload import TASKS
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class SoakedStack:
    servers: SharedServers
    stack: Stack
    soak: SoakResult


@pytest.fixture(scope="module")
def soaked_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoakedStack]:
    with running_product(tmp_path_factory.mktemp("soak")) as (servers, stack):
        yield SoakedStack(
            servers,
            stack,
            run_soak(
                servers, stack, caller_count=6, duration_s=180, fault_interval_s=SETTLING_TIME_S + 1, max_faults=4
            ),
        )


def test_acknowledged_writes_exist_once_after_faults(soaked_stack: SoakedStack):  # C33, C36, C38
    result = soaked_stack.soak
    assert result.tally.errors == []
    assert result.tally.unexpected_refusals == {}, "requests were refused although no component was unavailable"
    assert (len(result.fault_lines), result.sign_in_count > 0) == (4, True)
    assert all(workload.acknowledged_write_count for workload in result.workloads)


def test_soak_checks_detect_lost_writes(soaked_stack: SoakedStack):
    finished_workload = soaked_stack.soak.workloads[0]
    workload = replace(finished_workload, caller=replace(finished_workload.caller, tally=Tally()))
    workload.create_record()
    lost_id = next(reversed(workload.records))
    workload.caller.call("delete", "DELETE", f"{TASKS}/{lost_id}")

    workload.check_all()

    assert any(lost_id in error for error in workload.caller.tally.errors)
