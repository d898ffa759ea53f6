"""Measures two ways to the same answer in turn, so that what else happens on the machine meets both alike."""

from collections import Counter
from dataclasses import dataclass
from statistics import median

from bench.tableapi import load
from bench.tableapi.cases import Case
from bench.tableapi.product import COUNTED, Product

WARM_UP_S = 2.0


@dataclass(frozen=True)
class Way:
    """One case as it is asked of one product."""

    product: Product
    case: Case

    def slice(self, clients: int, seconds: float) -> "Spent":
        requests = self.case.requests(self.product.port, self.product.key)
        before = self.product.cpu_s()
        done = load.run(load.Job(self.product.port, requests, self.case.status, clients, seconds))
        spent = self.product.cpu_s()
        spent.subtract(before)
        return Spent(done.requests, done.seconds, spent, done.median_ms)


@dataclass(frozen=True)
class Spent:
    """What was answered in a slice, or in several, and the seconds of CPU by part of the product."""

    requests: int
    seconds: float
    cpu_s: Counter[str]
    median_ms: float

    def ms(self, *parts: str) -> float:
        """Milliseconds of CPU for one request."""
        return 1000 * sum(self.cpu_s[part] for part in parts) / self.requests

    @property
    def cpu_ms(self) -> float:
        return self.ms(*COUNTED)

    @property
    def rest_ms(self) -> float:
        return self.ms(*(part for part in self.cpu_s if part not in COUNTED))


def total(slices: list[Spent]) -> Spent:
    cpu_s: Counter[str] = Counter()
    for each in slices:
        cpu_s.update(each.cpu_s)
    requests, seconds = sum(each.requests for each in slices), sum(each.seconds for each in slices)
    return Spent(requests, seconds, cpu_s, median(each.median_ms for each in slices))


@dataclass(frozen=True)
class Comparison:
    """One run of two ways, each as its slices."""

    first: list[Spent]
    second: list[Spent]

    @property
    def ratio(self) -> float:
        """Of the medians: something else on the machine makes single slices dear."""
        return median(each.cpu_ms for each in self.first) / median(each.cpu_ms for each in self.second)


def in_turn(first: Way, second: Way, *, clients: int, seconds: float, slices: int) -> Comparison:
    """Warm both up, then A B, B A, A B …: neither always comes after the other."""
    found: dict[Way, list[Spent]] = {first: [], second: []}
    for way in found:
        way.slice(clients, WARM_UP_S)
    for number in range(slices):
        for way in (first, second) if number % 2 == 0 else (second, first):
            found[way].append(way.slice(clients, seconds))
    return Comparison(found[first], found[second])
