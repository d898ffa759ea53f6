"""Signs new people in during a soak, through a provider that answers immediately."""

import http.client
import threading
import time

from bench.soak.sign_ins import Browser
from bench.soak.tally import UNREACHABLE, Tally
from tests.config.stack import Stack
from tests.providers.hostile import HostileProvider

AGAIN_AFTER_S = 0.5


class People:
    def __init__(self, stack: Stack, idp: HostileProvider, tally: Tally) -> None:
        self.stack, self.idp, self.tally = stack, idp, tally
        self.signed_in = 0
        self._turn = threading.Lock()

    def sign_in(self) -> None:
        """Until it went well: who is not answered starts again, as people do."""
        first = time.monotonic()
        while True:
            started = time.monotonic()
            try:
                took_s = Browser(self.stack).sign_in(self.idp)
            except (OSError, http.client.HTTPException):
                self.tally.refused("sign-in", UNREACHABLE, started)
                time.sleep(AGAIN_AFTER_S)
                continue
            except SystemExit as error:
                self.tally.is_wrong(str(error))
                return
            self.tally.answered("sign-in", took_s, time.monotonic() - first)
            with self._turn:
                self.signed_in += 1
            return
