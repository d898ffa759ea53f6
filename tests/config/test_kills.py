"""Kills at random moments under load: all that was acknowledged is there once, and nothing is left running."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.soak import kills
from bench.soak.kills import Kill, KillInjector
from bench.soak.run import SoakResult, run_soak, running_product
from bench.soak.tally import Tally
from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually
from tests.support.nightly import choose_seed, scaled_count

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

CALLER_COUNT = 6
# More than the kills need; a nightly part may take no longer.
MAX_DURATION_S = 40 * 60.0
POSTGRES_KILLS, WORKER_KILLS = 50, 200


@dataclass
class RunningStack:
    servers: SharedServers
    stack: Stack
    kills: KillInjector | None = None

    def soak_with(self, kill: Kill, number: int, every_s: float) -> SoakResult:
        seed = choose_seed()

        def make_kills(servers: SharedServers, stack: Stack, tally: Tally) -> KillInjector:
            self.kills = KillInjector(servers, stack, tally, kill, seed)
            return self.kills

        return run_soak(
            self.servers,
            self.stack,
            caller_count=CALLER_COUNT,
            duration_s=MAX_DURATION_S,
            fault_interval_s=every_s,
            max_faults=number,
            injector_class=make_kills,
        )


@pytest.fixture
def running_stack(tmp_path: Path) -> Iterator[RunningStack]:
    with running_product(tmp_path) as (servers, stack):
        yield RunningStack(servers, stack)


def assert_intact(running: RunningStack, result: SoakResult, number: int) -> None:
    assert result.tally.errors == []
    assert len(result.fault_lines) == number
    assert all(workload.acknowledged_write_count and workload.deferred_names for workload in result.workloads)
    assert running.kills is not None
    eventually(lambda: running.kills and running.kills.orphans() == [])
    assert running.stack.get("/readyz") == 200
    assert running.stack.stop() == 0
    eventually(lambda: running.stack.leftover_processes() == [])


def test_acknowledged_work_survives_fifty_kills_of_postgresql(running_stack: RunningStack):
    number = scaled_count(POSTGRES_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.kill_postgres, number, every_s=4), number)


def test_acknowledged_work_survives_two_hundred_kills_of_workers(running_stack: RunningStack):
    number = scaled_count(WORKER_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.kill_worker, number, every_s=2), number)
