"""The short form of `./run bench soak`: callers of all kinds while components are killed, and the state afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from bench.soak.run import Soak, product, soak
from bench.soak.tally import SETTLED_AFTER_S, Tally
from bench.soak.work import TABLE
from tests.config.shared import SharedServers
from tests.config.stack import Stack

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class SoakedStack:
    servers: SharedServers
    stack: Stack
    soak: Soak


@pytest.fixture(scope="module")
def soaked_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoakedStack]:
    with product(tmp_path_factory.mktemp("soak")) as (servers, stack):
        yield SoakedStack(
            servers, stack, soak(servers, stack, callers=6, seconds=180, every_s=SETTLED_AFTER_S + 1, most=4)
        )


def test_acknowledged_writes_exist_once_after_faults(soaked_stack: SoakedStack):  # C33, C36, C38
    result = soaked_stack.soak
    assert result.tally.wrong == []
    assert result.tally.unexpected == {}, "refused although nothing was away"
    assert (len(result.faults), result.signed_in > 0) == (4, True)
    assert all(work.acknowledged for work in result.works)


def test_soak_checks_detect_lost_writes(soaked_stack: SoakedStack):
    result = soaked_stack.soak.works[0]
    work = replace(result, caller=replace(result.caller, tally=Tally()))
    work.creates()
    lost_record = next(reversed(work.records))
    work.caller.call("delete", "DELETE", f"{TABLE}/{lost_record}")

    work.checks_all()

    assert any(lost_record in entry for entry in work.caller.tally.wrong)
