"""In charge of what is printed: the figures, and the aims with what they come to."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.tableapi.cases import DRF, LEAST, LOOP, OURS
from bench.tableapi.measure import Figures


@dataclass(frozen=True, order=True)
class Place:
    """Where a figure belongs."""

    rows: int
    clients: int
    name: str
    way: str


Found = Mapping[Place, Figures]

# Of these many clients the aims are judged.
CLIENTS = 8
MOST_MEMORY_MB = 120
# Chosen: what counts as flat.
FLAT = 1.25


def table(found: Found, whats: Mapping[tuple[str, str], str]) -> list[str]:
    head = (
        f"{'rows':>9} {'clients':>7}  {'case':<46} {'req/s':>8} {'app ms':>8} {'db ms':>8} {'CPU ms':>8} {'spread':>7} "
        f"{'p50 ms':>8}"
    )
    lines = [head]
    for place, each in sorted(found.items()):
        case = f"{place.name} {place.way}: {whats[place.name, place.way]}"
        numbers = f"{each.rate:8,.0f} {each.app_ms:8.3f} {each.database_ms:8.3f} {each.cpu_ms:8.3f} {each.spread:6.0%}"
        numbers += f" {each.median_ms:8.3f}"
        lines.append(f"{place.rows:9,} {place.clients:7}  {case:<46} {numbers}")
    return lines


@dataclass(frozen=True)
class Aim:
    """One promise: `is_at_least` tells on which side of the limit it is held."""

    text: str
    value: float
    limit: float
    is_at_least: bool
    by_rate: float | None = None  # the same by requests per second

    @property
    def is_held(self) -> bool:
        return self.value >= self.limit if self.is_at_least else self.value <= self.limit

    def line(self) -> str:
        sign = "≥" if self.is_at_least else "≤"
        rate = f"   by requests/s {self.by_rate:6.2f}" if self.by_rate is not None else ""
        return (
            f"{'held' if self.is_held else 'MISSED':<7} {self.text:<44} {self.value:7.2f} {sign} {self.limit:<6g}{rate}"
        )


class Judged:
    """The aims over these figures, by the CPU of application and database together: what else runs on the machine
    changes it less than requests per second."""

    def __init__(self, found: Found, rows: int) -> None:
        self.found = found
        self.rows = rows

    def at(self, name: str, way: str = OURS, rows: int = 0, clients: int = CLIENTS) -> Figures | None:
        return self.found.get(Place(rows or self.rows, clients, name, way))

    def times_faster(self, text: str, name: str, than: tuple[str, str], limit: float) -> Aim | None:
        ours, other = self.at(name), self.at(*than)
        if ours is None or other is None:
            return None
        return Aim(text, other.cpu_ms / ours.cpu_ms, limit, True, ours.rate / other.rate)

    def times_loop(self, name: str, limit: float) -> Aim | None:
        ours, loop = self.at(name), self.at(name, LOOP, clients=1)
        if ours is None or loop is None:
            return None
        return Aim(f"{name}: times the CPU of its SQL loop", ours.cpu_ms / loop.cpu_ms, limit, False)

    def flat(self) -> Aim | None:
        sizes = [place.rows for place in self.found if place.name == "R2" and place.way == OURS]
        least, most = self.at("R2", rows=min(sizes)), self.at("R2", rows=max(sizes))
        if least is None or most is None or min(sizes) == max(sizes):
            return None
        text = f"R2: {max(sizes):,} rows, times {min(sizes):,} rows"
        return Aim(text, most.cpu_ms / least.cpu_ms, FLAT, False)

    def alike(self) -> Aim | None:
        """As somebody sees it who probes ids, and nobody else is there to make it noisy."""
        clients = min((place.clients for place in self.found if place.name == "H1"), default=CLIENTS)
        hidden, missing = self.at("H1", clients=clients), self.at("H2", clients=clients)
        if hidden is None or missing is None:
            return None
        between = abs(hidden.median_ms - missing.median_ms)
        return Aim("p50 ms between a hidden and a missing record", between, 1, False)

    def cursor(self) -> Aim | None:
        first, deep = self.at("P0"), self.at("Pc")
        if first is None or deep is None:
            return None
        return Aim("cursor at row 100,000: times the first page", deep.cpu_ms / first.cpu_ms, 1.5, False)


def aims(found: Found, rows: int, memory_mb: float) -> list[Aim]:
    judged = Judged(found, rows)
    listed = [
        judged.times_faster("R1: part of SELECT 1 over HTTP", "R1", ("S1", LEAST), 0.45),
        judged.times_loop("R2", 2.8),
        judged.times_loop("R4", 1.25),
        *(
            judged.times_faster(f"{name}: times idiomatic DRF", name, (name, DRF), limit)
            for name, limit in (("R1", 5), ("R2", 5), ("R3", 5), ("R4", 4), ("W1", 4), ("W2", 5))
        ),
        judged.flat(),
        judged.cursor(),
        judged.alike(),
        Aim("MB of a web process after R4", memory_mb, MOST_MEMORY_MB, False),
    ]
    return [aim for aim in listed if aim is not None]
