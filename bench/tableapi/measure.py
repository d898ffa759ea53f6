"""Measures two implementations in turn, so that other load on the machine affects both alike."""

from collections import Counter
from dataclasses import dataclass
from statistics import median

from bench.tableapi import load
from bench.tableapi.cases import Case
from bench.tableapi.product import MEASURED_PARTS, Product

WARM_UP_S = 2.0


@dataclass(frozen=True)
class Contender:
    """One case on one product."""

    product: Product
    case: Case
    label: str = ""  # for two cases on the same product

    @property
    def name(self) -> str:
        return self.label or self.product.name

    def measure_slice(self, client_count: int, duration_s: float) -> "Measurement":
        requests = self.case.requests(self.product.port, self.product.key)
        cpu_before_s = self.product.cpu_s()
        job = load.LoadJob(self.product.port, requests, self.case.status, client_count, duration_s)
        load_result = load.run_load(job)
        cpu_s = self.product.cpu_s()
        cpu_s.subtract(cpu_before_s)
        request_count = load_result.request_count * self.case.size
        return Measurement(request_count, load_result.duration_s, cpu_s, load_result.median_ms)


@dataclass(frozen=True)
class Measurement:
    """The responses of one or more slices, and the CPU seconds of each part of the product."""

    request_count: int
    duration_s: float
    cpu_s: Counter[str]
    median_ms: float

    def ms_per_request(self, *parts: str) -> float:
        """Milliseconds of CPU for one request."""
        return 1000 * sum(self.cpu_s[part] for part in parts) / self.request_count

    @property
    def cpu_ms_per_request(self) -> float:
        return self.ms_per_request(*MEASURED_PARTS)

    @property
    def other_ms_per_request(self) -> float:
        return self.ms_per_request(*(part for part in self.cpu_s if part not in MEASURED_PARTS))


def add_slices(slices: list[Measurement]) -> Measurement:
    cpu_s: Counter[str] = Counter()
    for slice_ in slices:
        cpu_s.update(slice_.cpu_s)
    request_count = sum(slice_.request_count for slice_ in slices)
    duration_s = sum(slice_.duration_s for slice_ in slices)
    return Measurement(request_count, duration_s, cpu_s, median(slice_.median_ms for slice_ in slices))


@dataclass(frozen=True)
class Comparison:
    """The slices of two contenders in one run."""

    first_slices: list[Measurement]
    second_slices: list[Measurement]

    @property
    def ratio(self) -> float:
        """The ratio of the medians, because other load on the machine makes single slices expensive."""
        first_ms, second_ms = (
            median(slice_.cpu_ms_per_request for slice_ in slices) for slices in (self.first_slices, self.second_slices)
        )
        return first_ms / second_ms


def compare(
    first: Contender, second: Contender, *, client_count: int, duration_s: float, slice_count: int
) -> Comparison:
    """Warms both up, then measures A B, B A, A B …, so that neither always comes second."""
    slices_by_contender: dict[Contender, list[Measurement]] = {first: [], second: []}
    for contender in slices_by_contender:
        contender.measure_slice(client_count, WARM_UP_S)
    for number in range(slice_count):
        for contender in (first, second) if number % 2 == 0 else (second, first):
            slices_by_contender[contender].append(contender.measure_slice(client_count, duration_s))
    return Comparison(slices_by_contender[first], slices_by_contender[second])
