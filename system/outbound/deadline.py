"""One deadline for all steps of a call, so that many short waits cannot add up to a long one."""

from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True)
class Deadline:
    seconds: float
    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(seconds=seconds, at=monotonic() + seconds)

    def for_step(self, seconds: float) -> "Deadline":
        """A deadline for one step, never later than this one."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at)

    def remaining_s(self) -> float:
        """The remaining seconds, never 0, because a socket with a timeout of 0 is non-blocking."""
        remaining_s = self.at - monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s
