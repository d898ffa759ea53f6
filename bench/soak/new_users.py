"""Signs in new users during a soak, through a provider that answers immediately."""

import http.client
import threading
import time

from bench.soak.sign_ins import Browser
from bench.soak.tally import NO_RESPONSE, Tally
from tests.config.stack import Stack
from tests.providers.hostile import HostileProvider

RETRY_WAIT_S = 0.5


class NewUsers:
    def __init__(self, stack: Stack, idp: HostileProvider, tally: Tally) -> None:
        self.stack, self.idp, self.tally = stack, idp, tally
        self.sign_in_count = 0
        self._lock = threading.Lock()

    def sign_in(self) -> None:
        """Signs in a new user; starts again after a lost response, as people do."""
        first_started_at = time.monotonic()
        while True:
            started_at = time.monotonic()
            try:
                duration_s = Browser(self.stack).sign_in(self.idp)
            except (OSError, http.client.HTTPException):
                self.tally.add_refusal("sign-in", NO_RESPONSE, started_at)
                time.sleep(RETRY_WAIT_S)
                continue
            except SystemExit as error:
                self.tally.add_error(str(error))
                return
            self.tally.add_timing("sign-in", duration_s, time.monotonic() - first_started_at)
            with self._lock:
                self.sign_in_count += 1
            return
