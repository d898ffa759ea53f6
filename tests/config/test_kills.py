"""Kills at random moments under load: every acknowledged write exists once, and no process is left."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.soak import kills
from bench.soak.kills import Kill, KillInjector
from bench.soak.run import SoakResult, run_soak, running_product
from bench.soak.tally import Tally
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually
from tests.support.nightly import choose_seed, scaled_count

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

CALLER_COUNT = 6
# The limit of a nightly part, which is longer than the kills take.
MAX_DURATION_S = 40 * 60.0
POSTGRES_KILLS, WORKER_KILLS = 50, 200


@dataclass
class RunningStack:
    servers: SharedServers
    stack: Stack
    injector: KillInjector | None = None

    def soak_with(self, kill: Kill, kill_count: int, interval_s: float) -> SoakResult:
        seed = choose_seed()

        def create_injector(servers: SharedServers, stack: Stack, tally: Tally) -> KillInjector:
            self.injector = KillInjector(servers, stack, tally, kill, seed)
            return self.injector

        return run_soak(
            self.servers,
            self.stack,
            caller_count=CALLER_COUNT,
            duration_s=MAX_DURATION_S,
            fault_interval_s=interval_s,
            max_faults=kill_count,
            injector_factory=create_injector,
        )


@pytest.fixture
def running_stack(tmp_path: Path) -> Iterator[RunningStack]:
    with running_product(tmp_path) as (servers, stack):
        yield RunningStack(servers, stack)


def assert_intact(running_stack: RunningStack, result: SoakResult, kill_count: int) -> None:
    assert result.tally.errors == []
    assert len(result.fault_lines) == kill_count
    assert all(workload.acknowledged_write_count and workload.deferred_names for workload in result.workloads)
    assert running_stack.injector is not None
    eventually(lambda: running_stack.injector and running_stack.injector.orphans() == [])
    assert running_stack.stack.get("/readyz") == 200
    assert running_stack.stack.stop() == 0
    eventually(lambda: running_stack.stack.leftover_processes() == [])


def test_acknowledged_work_survives_fifty_kills_of_postgresql(running_stack: RunningStack):
    kill_count = scaled_count(POSTGRES_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.kill_postgres, kill_count, interval_s=4), kill_count)


def test_acknowledged_work_survives_two_hundred_kills_of_workers(running_stack: RunningStack):
    kill_count = scaled_count(WORKER_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.kill_worker, kill_count, interval_s=2), kill_count)
