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
from tests.config.shared_servers import ENCRYPTION_KEY, SIGNING_KEY, ComponentStarter, SharedServers
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = pytest.mark.stack

ADMIN_PASSWORD = "chosen-by-hand-77"
# Each start writes new times into them.
TABLES_CHANGED_BY_A_START = {"django_celery_beat_periodictask", "django_celery_beat_periodictasks"}
# Its transactions get a number that counts as old in the new database.
CHANGE_LOG = "sys_change_"
# The running service counts its requests there once a minute, also while a test compares.
CHANGED_AT_ANY_TIME = "system_hourly_count"


@dataclass(frozen=True)
class Service:
    """A running web host with its secrets."""

    servers: SharedServers
    web: Stack
    key: str
    cookie: str


@pytest.fixture(scope="module")
def service(servers: SharedServers, start_component: ComponentStarter) -> Service:
    web_stack = start_component("web").wait_until_up()
    completed = manage("password", "admin", env=web_stack.env, input=ADMIN_PASSWORD + "\n")
    assert completed.returncode == 0, completed.stderr
    key = manage("key", "admin", "drill", env=web_stack.env).stdout.strip()
    assert key.startswith("sb_")
    return Service(servers, web_stack, key, create_session_cookie(web_stack))


def create_session_cookie(web: Stack) -> str:
    """Signs in with a browser, and returns its session cookie."""
    cookie_jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookie_jar))
    with browser.open(web.url + "/login/") as page:
        match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert match is not None
    form = {"csrfmiddlewaretoken": match.group(1), "login": "admin", "password": ADMIN_PASSWORD}
    with browser.open(web.url + "/login/", urllib.parse.urlencode(form).encode()) as page:
        assert page.status == 200
    cookies = {cookie.name: cookie.value for cookie in cookie_jar}
    return str(cookies["servicebase_session"])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for backups, with a umask that would make files readable by all users."""
    umask_before = os.umask(0)
    yield tmp_path
    os.umask(umask_before)


def create_backup(service: Service, target: Path) -> Path:
    completed = manage("backup", str(target), env=service.web.env)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith(f"The database was backed up to {target} (")
    return target


def table_contents(url: str) -> dict[str, tuple[int, str]]:
    """The row count and a hash of each table, and the position of each sequence."""
    contents = {}
    with psycopg.connect(url) as connection:
        sequences = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
        contents.update({name: (last_value or 0, "") for name, last_value in connection.execute(sequences).fetchall()})
        tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        for name in {name for (name,) in connection.execute(tables).fetchall()} - {CHANGED_AT_ANY_TIME}:
            query = sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(name))
            rows = connection.execute(query).fetchall()
            contents[name] = (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
    return contents


def database_names(servers: SharedServers) -> set[str]:
    with psycopg.connect(servers.postgres.url) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()}


def test_backup_of_a_running_service_restores_into_a_fresh_folder(service: Service, folder: Path):  # X15
    with psycopg.connect(service.servers.postgres.url) as connection:  # recorded once a minute, so not in this backup
        connection.execute("UPDATE accounts_access_key SET last_used_at = now()")
    contents_before = table_contents(service.servers.postgres.url)
    with continuous_reads(service):
        backup_file = create_backup(service, folder / "today.backup")

    restore = manage("restore", str(backup_file), env=environment(folder / "fresh", free_port()))

    assert restore.returncode == 0, restore.stderr
    restored_servers = SharedServers(folder / "fresh").start_postgres()
    try:
        contents_after = table_contents(restored_servers.postgres.url)
    finally:
        restored_servers.end()
    assert contents_before["user"][0] >= 1 and contents_before["django_migrations"][0] > 10
    assert {name: count for name, (count, _) in contents_after.items()} == {
        name: count for name, (count, _) in contents_before.items()
    }
    changed_tables = {name for name in contents_before if contents_after[name] != contents_before[name]}
    assert {name for name in changed_tables if not name.startswith(CHANGE_LOG)} <= TABLES_CHANGED_BY_A_START


@contextmanager
def continuous_reads(service: Service) -> Iterator[list[int]]:
    """The statuses of requests that run during the block."""
    statuses: list[int] = []
    stop_event = threading.Event()

    def request_repeatedly() -> None:
        while not stop_event.is_set():
            statuses.append(me_status(service))

    reader = threading.Thread(target=request_repeatedly)
    reader.start()
    try:
        yield statuses
    finally:
        stop_event.set()
        reader.join()
    assert statuses


@contextmanager
def persistent_clients(service: Service) -> Iterator[None]:
    """Clients that reconnect as soon as they are disconnected."""
    stop_event = threading.Event()

    def keep_connected() -> None:
        while not stop_event.is_set():
            with suppress(psycopg.OperationalError), psycopg.connect(service.servers.postgres.url) as connection:
                connection.execute("SELECT pg_sleep(1)")

    clients = [threading.Thread(target=keep_connected) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop_event.set()
        for client in clients:
            client.join()


def me_status(service: Service) -> int:
    request = urllib.request.Request(service.web.url + "/api/me", headers={"Authorization": f"Bearer {service.key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_backup_is_private_and_contains_no_plaintext_secret(service: Service, folder: Path):
    backup_file = create_backup(service, folder / "private.backup")

    assert backup_file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["private.backup"]
    backup_sql = sql_of_backup(backup_file)
    for table in ("accounts_access_key", "accounts_session", '"user"'):
        assert f"COPY public.{table} " in backup_sql
    assert service.key[:9] in backup_sql  # the prefix by which users recognize a key
    for secret in (ADMIN_PASSWORD, service.key, service.cookie, SIGNING_KEY, ENCRYPTION_KEY):
        assert secret not in backup_sql


def sql_of_backup(file: Path) -> str:
    """The SQL that a reader of the backup file sees."""
    completed = subprocess.run([postgres_tool("pg_restore"), "--file=-", str(file)], capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


CLIENT_SECRET, CLAIM_CANARY = "client-secret-canary", "claim-canary@example.com"
CREATE_CONNECTION_SCRIPT = """
from sso.models import OidcSetting
from system import encryption
setting = OidcSetting(
    name="Backed up", url_idp="https://idp.example.com", realm="acme", client_id="servicebase",
    redirect_uri={url!r} + "/sso/callback/", issuer="https://idp.example.com/realms/acme",
)
setting.client_secret = encryption.encrypt({secret!r})
setting.save()
setting.client_secret = encryption.encrypt({secret!r} + "-later")
setting.save()
setting.store_claims({{"email": {claim!r}}})
"""


def test_provider_tokens_in_a_backup_require_the_key(service: Service, folder: Path):  # A56
    script = CREATE_CONNECTION_SCRIPT.format(url=service.web.url, secret=CLIENT_SECRET, claim=CLAIM_CANARY)
    completed = manage("shell", "-c", script, env=service.web.env)
    assert completed.returncode == 0, completed.stderr
    backup_sql = sql_of_backup(create_backup(service, folder / "connected.backup"))

    (table_data,) = re.findall(r"^COPY public.oidc_setting .*?^\\\.$", backup_sql, re.DOTALL | re.MULTILINE)
    tokens = re.findall(r"gAAAA[\w=-]+", table_data)
    decrypted_tokens = {Fernet(ENCRYPTION_KEY).decrypt(token).decode() for token in tokens}
    assert decrypted_tokens == {f"{CLIENT_SECRET}-later", json.dumps({"email": CLAIM_CANARY})}
    for token in tokens:
        with pytest.raises(InvalidToken):
            Fernet(Fernet.generate_key()).decrypt(token)
    for secret in (CLIENT_SECRET, CLAIM_CANARY, ENCRYPTION_KEY):
        assert secret not in backup_sql and base64.b64encode(secret.encode()).decode().rstrip("=") not in backup_sql


def test_restored_service_requires_its_key(service: Service, folder: Path):  # X15
    script = CREATE_CONNECTION_SCRIPT.format(url=service.web.url, secret=CLIENT_SECRET, claim=CLAIM_CANARY)
    query = "OidcSetting.objects.filter(name='Backed up').last()"
    read_script = f"from sso.models import OidcSetting; print({query}.decrypted_client_secret)"
    assert manage("shell", "-c", script, env=service.web.env).returncode == 0
    backup_file = create_backup(service, folder / "with-secrets.backup")
    restored_environment = environment(folder / "restored", free_port(), SVC_SECRET_KEYS=ENCRYPTION_KEY)
    assert manage("restore", str(backup_file), env=restored_environment).returncode == 0

    run_with_key = manage("shell", "-c", read_script, env=restored_environment)
    run_without_key = manage(
        "shell", "-c", read_script, env={**restored_environment, "SVC_SECRET_KEYS": Fernet.generate_key().decode()}
    )

    assert run_with_key.stdout.splitlines()[-1] == f"{CLIENT_SECRET}-later"
    assert run_without_key.returncode != 0 and "DecryptionFailed" in run_without_key.stderr
    assert CLIENT_SECRET not in run_without_key.stdout + run_without_key.stderr


def with_flipped_bit(content: bytes) -> bytes:
    position = len(content) * 3 // 4
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "of another kind": lambda content: b"-- a script\nDROP DATABASE servicebase;\n",
    "cut off": lambda content: content[: len(content) * 9 // 10],
    "changed": with_flipped_bit,
}


@pytest.fixture(scope="module")
def backup_content(service: Service, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return create_backup(service, tmp_path_factory.mktemp("backup") / "intact.backup").read_bytes()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_changes_nothing(
    damage: Callable[[bytes], bytes], service: Service, backup_content: bytes, folder: Path
):
    backup_file = folder / "damaged.backup"
    backup_file.write_bytes(damage(backup_content))
    contents_before, databases_before = table_contents(service.servers.postgres.url), database_names(service.servers)

    refusal = manage("restore", str(backup_file), env=service.web.env)

    assert refusal.returncode == 1
    assert refusal.stderr == f"CommandError: {backup_file} is damaged or is not a backup of this service.\n"
    assert table_contents(service.servers.postgres.url) == contents_before
    assert database_names(service.servers) == databases_before
    assert me_status(service) == 200


def test_missing_file_is_refused(service: Service, folder: Path):
    refusal = manage("restore", str(folder / "none"), env=service.web.env)

    assert (refusal.returncode, refusal.stderr) == (1, f"CommandError: The file {folder}/none does not exist.\n")


@pytest.mark.parametrize("target", ["missing/today.backup", "."])
def test_failed_backup_leaves_no_file(target: str, service: Service, folder: Path):
    refusal = manage("backup", str(folder / target), env=service.web.env)

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("CommandError: ") and len(refusal.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_restore_replaces_a_running_service_and_keeps_the_old_data(service: Service, folder: Path):
    backup_file = create_backup(service, folder / "before.backup")
    assert manage("key", "admin", "made later", env=service.web.env).returncode == 0
    count_query = "SELECT count(*) FROM accounts_access_key WHERE name = 'made later'"

    with continuous_reads(service) as statuses, persistent_clients(service):
        restore = manage("restore", str(backup_file), env=service.web.env)

    assert restore.returncode == 0, restore.stderr
    match = re.search(r"The previous database is kept as (servicebase_until_\w+)\.", restore.stdout)
    assert match is not None
    eventually(lambda: me_status(service) == 200, timeout_s=10)
    assert set(statuses) <= {200, 503}
    current_url = service.servers.postgres.url
    for url, expected_count in ((current_url, 0), (current_url.replace("@/servicebase?", f"@/{match.group(1)}?"), 1)):
        with psycopg.connect(url) as connection:
            assert connection.execute(count_query).fetchone() == (expected_count,)
    with psycopg.connect(current_url) as connection:
        # They count as older than every transaction of the new database.
        assert connection.execute("SELECT max(transaction::text) FROM sys_change").fetchone() == ("3",)


def test_restored_database_keeps_its_sort_order(service: Service, folder: Path):
    backup_file = create_backup(service, folder / "sorted.backup")
    url = service.servers.postgres.url.replace("@/servicebase?", "@/sorted?")
    locale_query = "SELECT encoding, datcollate, datlocprovider, datlocale FROM pg_database WHERE datname = %s"
    with psycopg.connect(service.servers.postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE sorted TEMPLATE template0 ENCODING UTF8 LOCALE_PROVIDER libc LOCALE 'C'")
        locale_before = connection.execute(locale_query, ["sorted"]).fetchone()

        restore = manage("restore", str(backup_file), env={**service.web.env, "DATABASE_URL": url})

        assert restore.returncode == 0, restore.stderr
        assert connection.execute(locale_query, ["sorted"]).fetchone() == locale_before
        assert locale_before != connection.execute(locale_query, ["template1"]).fetchone()
