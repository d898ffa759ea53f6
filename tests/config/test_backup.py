"""`manage.py backup` and `restore`."""

import base64
import hashlib
import http.cookiejar
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from cryptography.fernet import Fernet, InvalidToken
from psycopg import sql

from config.runtime.embedded_servers import postgres_tool
from tests.config.shared import ENCRYPTION_KEY, SIGNING_KEY, SharedServers, Start
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = pytest.mark.stack

ADMIN_PASSWORD = "chosen-by-hand-77"
# Rewritten at each start with the same content but for a time.
TOUCHED_BY_A_START = {"django_celery_beat_periodictask", "django_celery_beat_periodictasks"}


@dataclass(frozen=True)
class Service:
    """A running web host, and what must stay secret."""

    servers: SharedServers
    web: Stack
    key: str
    cookie: str


@pytest.fixture(scope="module")
def service(servers: SharedServers, start: Start) -> Service:
    web = start("web").wait_until_up()
    set_password = manage("password", "admin", env=web.env, input=ADMIN_PASSWORD + "\n")
    assert set_password.returncode == 0, set_password.stderr
    key = manage("key", "admin", "drill", env=web.env).stdout.strip()
    assert key.startswith("sb_")
    return Service(servers, web, key, signed_in_cookie(web))


def signed_in_cookie(web: Stack) -> str:
    """The session cookie of a browser that signed in."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with browser.open(web.url + "/login/") as page:
        match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert match is not None
    form = {"csrfmiddlewaretoken": match.group(1), "login": "admin", "password": ADMIN_PASSWORD}
    with browser.open(web.url + "/login/", urllib.parse.urlencode(form).encode()) as page:
        assert page.status == 200
    cookies = {cookie.name: cookie.value for cookie in jar}
    return str(cookies["servicebase_session"])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """For backups; with a umask that would let everybody read them."""
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def backup(service: Service, target: Path) -> Path:
    done = manage("backup", str(target), env=service.web.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"The database was backed up to {target} (")
    return target


def contents(url: str) -> dict[str, tuple[int, str]]:
    """Of each table the number of rows and a hash over them; of each sequence where it stands."""
    result = {}
    with psycopg.connect(url) as link:
        sequences = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
        result.update({name: (last or 0, "") for name, last in link.execute(sequences).fetchall()})
        tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        for (name,) in link.execute(tables).fetchall():
            rows = link.execute(sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(name))).fetchall()
            result[name] = (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
    return result


def databases(servers: SharedServers) -> set[str]:
    with psycopg.connect(servers.postgres.url) as link:
        return {name for (name,) in link.execute("SELECT datname FROM pg_database").fetchall()}


def test_backup_of_a_running_service_restores_into_a_fresh_folder(service: Service, folder: Path):  # X15
    with psycopg.connect(service.servers.postgres.url) as link:  # noted once a minute: not just now
        link.execute("UPDATE accounts_access_key SET last_used_at = now()")
    before = contents(service.servers.postgres.url)
    with read_all_the_time(service):
        saved = backup(service, folder / "today.backup")

    restored = manage("restore", str(saved), env=environment(folder / "fresh", free_port()))

    assert restored.returncode == 0, restored.stderr
    fresh = SharedServers(folder / "fresh").start_postgres()
    try:
        after = contents(fresh.postgres.url)
    finally:
        fresh.end()
    assert before["user"][0] >= 1 and before["django_migrations"][0] > 10
    assert {name: count for name, (count, _) in after.items()} == {name: count for name, (count, _) in before.items()}
    assert {name for name in before if after[name] != before[name]} <= TOUCHED_BY_A_START


@contextmanager
def read_all_the_time(service: Service) -> Iterator[list[int]]:
    """Somebody asks all the while; what they were answered."""
    statuses: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            statuses.append(status_of_me(service))

    reader = threading.Thread(target=ask)
    reader.start()
    try:
        yield statuses
    finally:
        stop.set()
        reader.join()
    assert statuses


@contextmanager
def clinging_clients(service: Service) -> Iterator[None]:
    """Clients that connect again as soon as they are thrown out."""
    stop = threading.Event()

    def cling() -> None:
        while not stop.is_set():
            with suppress(psycopg.OperationalError), psycopg.connect(service.servers.postgres.url) as link:
                link.execute("SELECT pg_sleep(1)")

    clients = [threading.Thread(target=cling) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


def status_of_me(service: Service) -> int:
    request = urllib.request.Request(service.web.url + "/api/me", headers={"Authorization": f"Bearer {service.key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_backup_is_private_and_holds_no_secret_in_plain(service: Service, folder: Path):
    saved = backup(service, folder / "private.backup")

    assert saved.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["private.backup"]
    script = opened(saved)
    for table in ("accounts_access_key", "accounts_session", '"user"'):
        assert f"COPY public.{table} " in script
    assert service.key[:9] in script  # the prefix that people recognise a key by
    for secret in (ADMIN_PASSWORD, service.key, service.cookie, SIGNING_KEY, ENCRYPTION_KEY):
        assert secret not in script


def opened(saved: Path) -> str:
    """What anybody reads in a backup who has only that."""
    done = subprocess.run([postgres_tool("pg_restore"), "--file=-", str(saved)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


CLIENT_SECRET, CLAIM = "client-secret-canary", "claim-canary@example.com"
CONNECT = """
from sso.models import OidcSetting
made = OidcSetting(
    name="Backed up", url_idp="https://idp.example.com", realm="acme", client_id="servicebase",
    redirect_uri={url!r} + "/sso/callback/", issuer="https://idp.example.com/realms/acme",
)
made.set_secret({secret!r})
made.save()
made.set_secret({secret!r} + "-later")
made.save()
made.store_claims({{"email": {claim!r}}})
"""


def test_provider_tokens_in_a_backup_require_the_key(service: Service, folder: Path):  # A56
    code = CONNECT.format(url=service.web.url, secret=CLIENT_SECRET, claim=CLAIM)
    connected = manage("shell", "-c", code, env=service.web.env)
    assert connected.returncode == 0, connected.stderr
    script = opened(backup(service, folder / "connected.backup"))

    (stored,) = re.findall(r"^COPY public.oidc_setting .*?^\\\.$", script, re.DOTALL | re.MULTILINE)
    tokens = re.findall(r"gAAAA[\w=-]+", stored)
    with_key = {Fernet(ENCRYPTION_KEY).decrypt(token).decode() for token in tokens}
    assert with_key == {f"{CLIENT_SECRET}-later", json.dumps({"email": CLAIM})}
    for token in tokens:
        with pytest.raises(InvalidToken):
            Fernet(Fernet.generate_key()).decrypt(token)
    for secret in (CLIENT_SECRET, CLAIM, ENCRYPTION_KEY):
        assert secret not in script and base64.b64encode(secret.encode()).decode().rstrip("=") not in script


def test_restored_service_requires_its_key(service: Service, folder: Path):  # X15
    code = CONNECT.format(url=service.web.url, secret=CLIENT_SECRET, claim=CLAIM)
    read = "from sso.models import OidcSetting; print(OidcSetting.objects.filter(name='Backed up').last().secret)"
    assert manage("shell", "-c", code, env=service.web.env).returncode == 0
    saved = backup(service, folder / "with-secrets.backup")
    fresh = environment(folder / "restored", free_port(), SVC_SECRET_KEYS=ENCRYPTION_KEY)
    assert manage("restore", str(saved), env=fresh).returncode == 0

    with_key = manage("shell", "-c", read, env=fresh)
    without = manage("shell", "-c", read, env={**fresh, "SVC_SECRET_KEYS": Fernet.generate_key().decode()})

    assert with_key.stdout.splitlines()[-1] == f"{CLIENT_SECRET}-later"
    assert without.returncode != 0 and "DecryptionFailed" in without.stderr
    assert CLIENT_SECRET not in without.stdout + without.stderr


def one_bit_flipped(whole: bytes) -> bytes:
    place = len(whole) * 3 // 4
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "of another kind": lambda whole: b"-- a script\nDROP DATABASE servicebase;\n",
    "cut off": lambda whole: whole[: len(whole) * 9 // 10],
    "changed": one_bit_flipped,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_changes_nothing(damage: Callable[[bytes], bytes], service: Service, folder: Path):
    saved = backup(service, folder / "damaged.backup")
    saved.write_bytes(damage(saved.read_bytes()))
    before, existing = contents(service.servers.postgres.url), databases(service.servers)

    refused = manage("restore", str(saved), env=service.web.env)

    assert refused.returncode == 1
    assert refused.stderr == f"CommandError: {saved} is damaged or is not a backup of this service.\n"
    assert contents(service.servers.postgres.url) == before
    assert databases(service.servers) == existing
    assert status_of_me(service) == 200


def test_missing_file_is_refused(service: Service, folder: Path):
    refused = manage("restore", str(folder / "none"), env=service.web.env)

    assert (refused.returncode, refused.stderr) == (1, f"CommandError: The file {folder}/none does not exist.\n")


@pytest.mark.parametrize("target", ["missing/today.backup", "."])
def test_failed_backup_leaves_no_file(target: str, service: Service, folder: Path):
    refused = manage("backup", str(folder / target), env=service.web.env)

    assert refused.returncode == 1
    assert refused.stderr.startswith("CommandError: ") and len(refused.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_restore_replaces_a_running_service_and_keeps_the_old_data(service: Service, folder: Path):
    saved = backup(service, folder / "before.backup")
    assert manage("key", "admin", "made later", env=service.web.env).returncode == 0
    counts = "SELECT count(*) FROM accounts_access_key WHERE name = 'made later'"

    with read_all_the_time(service) as statuses, clinging_clients(service):
        restored = manage("restore", str(saved), env=service.web.env)

    assert restored.returncode == 0, restored.stderr
    former = re.search(r"The former database is kept as (servicebase_until_\w+)\.", restored.stdout)
    assert former is not None
    eventually(lambda: status_of_me(service) == 200, within_s=10)
    assert set(statuses) <= {200, 503}
    now = service.servers.postgres.url
    for url, expected in ((now, 0), (now.replace("@/servicebase?", f"@/{former.group(1)}?"), 1)):
        with psycopg.connect(url) as link:
            assert link.execute(counts).fetchone() == (expected,)


def test_restored_database_keeps_its_sort_order(service: Service, folder: Path):
    saved = backup(service, folder / "sorted.backup")
    url = service.servers.postgres.url.replace("@/servicebase?", "@/sorted?")
    kind = "SELECT encoding, datcollate, datlocprovider, datlocale FROM pg_database WHERE datname = %s"
    with psycopg.connect(service.servers.postgres.url, autocommit=True) as link:
        link.execute("CREATE DATABASE sorted TEMPLATE template0 ENCODING UTF8 LOCALE_PROVIDER libc LOCALE 'C'")
        before = link.execute(kind, ["sorted"]).fetchone()

        restored = manage("restore", str(saved), env={**service.web.env, "DATABASE_URL": url})

        assert restored.returncode == 0, restored.stderr
        assert link.execute(kind, ["sorted"]).fetchone() == before
        assert before != link.execute(kind, ["template1"]).fetchone()
