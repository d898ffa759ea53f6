"""Kills at random moments under load: all that was acknowledged is there once, and nothing is left running."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.soak import kills
from bench.soak.kills import Kill, Kills
from bench.soak.run import Soak, product, soak
from bench.soak.tally import Tally
from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually
from tests.support.nightly import run_seed, share_of

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

CALLER_COUNT = 6
# More than the kills need; a nightly part may take no longer.
MAX_DURATION_S = 40 * 60.0
POSTGRES_KILLS, WORKER_KILLS = 50, 200


@dataclass
class RunningStack:
    servers: SharedServers
    stack: Stack
    kills: Kills | None = None

    def soak_with(self, kill: Kill, number: int, every_s: float) -> Soak:
        seed = run_seed()

        def make_kills(servers: SharedServers, stack: Stack, tally: Tally) -> Kills:
            self.kills = Kills(servers, stack, tally, kill, seed)
            return self.kills

        return soak(
            self.servers,
            self.stack,
            callers=CALLER_COUNT,
            seconds=MAX_DURATION_S,
            every_s=every_s,
            most=number,
            make_faults=make_kills,
        )


@pytest.fixture
def running_stack(tmp_path: Path) -> Iterator[RunningStack]:
    with product(tmp_path) as (servers, stack):
        yield RunningStack(servers, stack)


def assert_intact(running: RunningStack, result: Soak, number: int) -> None:
    assert result.tally.wrong == []
    assert len(result.faults) == number
    assert all(work.acknowledged and work.deferred for work in result.works)
    assert running.kills is not None
    eventually(lambda: running.kills and running.kills.orphans() == [])
    assert running.stack.get("/readyz") == 200
    assert running.stack.stop() == 0
    eventually(lambda: running.stack.leftover_processes() == [])


def test_acknowledged_work_survives_fifty_kills_of_postgresql(running_stack: RunningStack):
    number = share_of(POSTGRES_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.postgres, number, every_s=4), number)


def test_acknowledged_work_survives_two_hundred_kills_of_workers(running_stack: RunningStack):
    number = share_of(WORKER_KILLS)
    assert_intact(running_stack, running_stack.soak_with(kills.worker, number, every_s=2), number)
