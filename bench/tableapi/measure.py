"""Measures two implementations in turn, so that other load on the machine affects both alike."""

from collections import Counter
from dataclasses import dataclass
from statistics import median

from bench.tableapi import load
from bench.tableapi.cases import Case
from bench.tableapi.product import COUNTED, Product

WARM_UP_S = 2.0


@dataclass(frozen=True)
class Contender:
    """One case as it is asked of one product."""

    product: Product
    case: Case
    way: str = ""  # where one product is asked in two ways

    @property
    def name(self) -> str:
        return self.way or self.product.name

    def slice(self, clients: int, seconds: float) -> "Measurement":
        requests = self.case.requests(self.product.port, self.product.key)
        before = self.product.cpu_s()
        result = load.run(load.Job(self.product.port, requests, self.case.status, clients, seconds))
        cpu_s = self.product.cpu_s()
        cpu_s.subtract(before)
        return Measurement(result.requests, result.seconds, cpu_s, result.median_ms)


@dataclass(frozen=True)
class Measurement:
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


def total(slices: list[Measurement]) -> Measurement:
    cpu_s: Counter[str] = Counter()
    for slice_ in slices:
        cpu_s.update(slice_.cpu_s)
    requests, seconds = sum(slice_.requests for slice_ in slices), sum(slice_.seconds for slice_ in slices)
    return Measurement(requests, seconds, cpu_s, median(slice_.median_ms for slice_ in slices))


@dataclass(frozen=True)
class Comparison:
    """One run of two ways, each as its slices."""

    first: list[Measurement]
    second: list[Measurement]

    @property
    def ratio(self) -> float:
        """Of the medians: something else on the machine makes single slices dear."""
        return median(slice_.cpu_ms for slice_ in self.first) / median(slice_.cpu_ms for slice_ in self.second)


def compare(first: Contender, second: Contender, *, clients: int, seconds: float, slices: int) -> Comparison:
    """Warm both up, then A B, B A, A B …: neither always comes after the other."""
    slices_of: dict[Contender, list[Measurement]] = {first: [], second: []}
    for contender in slices_of:
        contender.slice(clients, WARM_UP_S)
    for number in range(slices):
        for contender in (first, second) if number % 2 == 0 else (second, first):
            slices_of[contender].append(contender.slice(clients, seconds))
    return Comparison(slices_of[first], slices_of[second])
