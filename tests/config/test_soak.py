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
class Soaked:
    servers: SharedServers
    stack: Stack
    found: Soak


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soaked]:
    with product(tmp_path_factory.mktemp("soak")) as (servers, stack):
        yield Soaked(servers, stack, soak(servers, stack, callers=6, seconds=180, every_s=SETTLED_AFTER_S + 1, most=4))


def test_acknowledged_writes_exist_once_after_faults(soaked: Soaked):  # C33, C36, C38
    result = soaked.found
    assert result.tally.wrong == []
    assert result.tally.unexpected == {}, "refused although nothing was away"
    assert (len(result.faults), result.signed_in > 0) == (4, True)
    assert all(work.acknowledged for work in result.works)


def test_soak_checks_detect_lost_writes(soaked: Soaked):
    result = soaked.found.works[0]
    work = replace(result, caller=replace(result.caller, tally=Tally()))
    work.creates()
    lost = next(reversed(work.records))
    work.caller.call("delete", "DELETE", f"{TABLE}/{lost}")

    work.checks_all()

    assert any(lost in entry for entry in work.caller.tally.wrong)
