"""In charge of who only reads pages while others sign in: how long each page takes them meanwhile."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from statistics import median

from tests.config.stack import Stack, manage

EVERY_S = 0.1
# The value that a browser would hold; the database has only its hash.
SESSION = """
from django.conf import settings
from django.test import Client
from accounts.models import User
browser = Client()
browser.force_login(User.objects.get(login="admin"))
print(browser.cookies[settings.SESSION_COOKIE_NAME].OutputString().partition(";")[0])
"""


@dataclass
class Page:
    name: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    took_ms: list[float] = field(default_factory=list)
    failed: str = ""

    def read(self, port: int) -> None:
        began = time.monotonic()
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as link:
            try:
                link.request("GET", self.path, headers=self.headers)
                answer = link.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.failed = f"{self.name} was not answered: {error}"
                return
        self.took_ms.append(1000 * (time.monotonic() - began))
        if answer.status != 200:
            self.failed = f"{self.name} was answered with {answer.status}"

    def told(self) -> str:
        late = sorted(self.took_ms)[int(0.95 * (len(self.took_ms) - 1))]
        return f"  {self.name:<28} {median(self.took_ms):8.1f} {late:8.1f} {max(self.took_ms):8.1f}"


def pages(stack: Stack) -> list[Page]:
    """What nobody, a program and an administrator ask for."""
    return [
        Page("the sign-in page", "/login/?local=1"),
        Page("/api/me with a key", "/api/me", {"Authorization": f"Bearer {said(stack, 'key', 'admin', 'bench')}"}),
        Page("the list of users", "/admin/accounts/user/", {"Cookie": said(stack, "shell", "-c", SESSION)}),
    ]


def said(stack: Stack, *words: str) -> str:
    """The last line that a command prints."""
    done = manage(*words, env=stack.env)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout.strip().rpartition("\n")[2]


@contextmanager
def reading(stack: Stack) -> Iterator[list[Page]]:
    """Each page ten times a second, by somebody of its own, until the end of the block."""
    found = pages(stack)
    ended = threading.Event()

    def read(page: Page) -> None:
        page.read(stack.port)
        while not ended.wait(EVERY_S) and not page.failed:
            page.read(stack.port)

    readers = [threading.Thread(target=read, args=(page,)) for page in found]
    for each in readers:
        each.start()
    try:
        yield found
    finally:
        ended.set()
        for each in readers:
            each.join()
    if failed := [page.failed for page in found if page.failed]:
        raise SystemExit("; ".join(failed))
