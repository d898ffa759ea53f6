"""In charge of people who sign in meanwhile, each somebody new, through a provider that answers at once."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.soak.tally import UNREACHABLE, Tally
from bench.sso.crowd import Browser, connect
from tests.config.stack import Stack
from tests.providers.hostile import HostileProvider

AGAIN_AFTER_S = 0.5


class People:
    def __init__(self, stack: Stack, idp: HostileProvider, tally: Tally) -> None:
        self.stack, self.idp, self.tally = stack, idp, tally
        self.signed_in = 0
        self._turn = threading.Lock()

    def sign_in(self) -> None:
        """Until it went well: who is refused while something is away starts again, as people do."""
        while True:
            began = time.monotonic()
            try:
                took_s = Browser(self.stack).sign_in(self.idp)
            except (OSError, SystemExit, KeyError, TypeError) as error:
                self._failed(began, error)
                if not self.tally.is_anything_away(began):
                    return
                time.sleep(AGAIN_AFTER_S)
                continue
            self.tally.answered("sign-in", took_s)
            with self._turn:
                self.signed_in += 1
            return

    def _failed(self, began: float, error: BaseException) -> None:
        if self.tally.is_anything_away(began) or isinstance(error, OSError):
            self.tally.refused("sign-in", UNREACHABLE, began)
        else:
            self.tally.is_wrong(f"a sign-in ended with {error!r}")


@contextmanager
def people(stack: Stack, tally: Tally) -> Iterator[People]:
    numbers = itertools.count(1)
    with HostileProvider() as idp:

        def somebody_else(claims: dict[str, object]) -> str:
            name = f"person{next(numbers)}"
            who = {"sub": f"sub-{name}", "preferred_username": name, "email": f"{name}@example.com"}
            return idp.sign({**claims, **who, "at_hash": ...})

        idp.client_secret = ""
        connect(stack, idp)
        idp.id_token = somebody_else
        yield People(stack, idp, tally)
