"""Data written by an earlier version of the product, and the present version started on the same folder."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from config.env import ROOT
from tests.config.stack import Stack, eventually, manage

pytestmark = pytest.mark.stack

HOUSE, RECORDS, SIGN_ON, COLLECTIONS = "cc59739", "befb6af", "bb28704", "a4ece5e"
EARLIER = {
    HOUSE: "before the areas",
    RECORDS: "with the Table API",
    SIGN_ON: "and single sign-on",
    COLLECTIONS: "and document collections",
}
CONNECTION = {
    "name": "Company account",
    "url_idp": "https://idp.example.com",
    "realm": "acme",
    "client_id": "servicebase",
    "client_secret": "a client secret of long ago",
    "redirect_uri": "http://127.0.0.1:8000/sso/callback/",
    "authorization_type": "code",
    "user_field": "email",
}
SECRET = "from sso.models import OidcSetting; print(OidcSetting.objects.get().secret)"
TEXT = "To change the toner, open the front door and pull the green lever."


@dataclass
class Written:
    """What the earlier product acknowledged, and how it answered for it."""

    key: str
    answers: dict[str, Any] = field(default_factory=dict)


def code_of(commit: str, folder: Path) -> Path:
    """The project as it was then; it runs on the packages of now, which `./run` would install as its first step."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip("this clone has no history to take earlier code from")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def write(earlier: Stack, commit: str) -> Written:
    key = manage("key", "admin", "kept", "--days", "0", env=earlier.env, code=earlier.code).stdout.strip()
    written = Written(key)
    makes: list[tuple[str, str, Any]] = []
    if commit != HOUSE:
        makes += [
            ("POST", "/rest/v1/table/sys_db_table", {"name": "machine", "label": "Machine"}),
            ("POST", "/rest/v1/table/task", {"short_description": "Kept", "priority": "2"}),
        ]
    if commit in (SIGN_ON, COLLECTIONS):
        makes.append(("POST", "/rest/v1/table/oidc_setting", CONNECTION))
    if commit == COLLECTIONS:
        load = {"text": TEXT, "metadata": {"kind": "hint"}, "wait": True}
        makes.append(("POST", "/load_text_to_collection?collection_name=hints&doc_id=toner", load))
    for method, path, body in makes:
        response = earlier.call(method, path, body, key=key)
        assert response.status == 201, (path, response)
    written.answers = {path: earlier.call("GET", path, key=key).body for path in read_with(commit)}
    return written


def read_with(commit: str) -> list[str]:
    """Addresses that show all of it."""
    result = ["/api/me"]
    if commit != HOUSE:
        result += [f"/rest/v1/table/{name}?sysparm_query=ORDERBYsys_id" for name in ("task", "user", "sys_acl")]
    if commit in (SIGN_ON, COLLECTIONS):
        result.append("/rest/v1/table/oidc_setting")
    if commit == COLLECTIONS:
        result.append("/get_content_by_tag?collection_name=hints&tag_info=kind=hint")
    return result


def kept(before: Any, now: Any) -> bool:
    """Whether all that was said before is said now; there may be more to a record."""
    if isinstance(before, dict) and isinstance(now, dict):
        return all(name in now and kept(value, now[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(kept, before, now))
    return bool(before == now)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(commit, id=about, marks=[] if commit == COLLECTIONS else pytest.mark.nightly)
        for commit, about in EARLIER.items()
    ],
)
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Written, Stack]]:
    root = tmp_path_factory.mktemp("upgraded")
    data = root / "data"
    earlier = Stack(data)
    earlier.code = code_of(request.param, root / "code")
    try:
        earlier.start().wait_until_up()
        written = write(earlier, request.param)
        assert earlier.stop() == 0
    finally:
        earlier.end()
    now = Stack(data)
    now.port, now.env["SVC_PORT"] = earlier.port, str(earlier.port)
    try:
        yield request.param, written, now.start().wait_until_up()
        assert now.stop() == 0
    finally:
        now.end()


def test_upgrade_keeps_all_data(upgraded: tuple[str, Written, Stack]):
    commit, written, now = upgraded

    eventually(lambda: now.get("/readyz") == 200)
    for path, before in written.answers.items():
        response = now.call("GET", path, key=written.key)
        assert response.status == 200
        assert kept(before, response.body), (path, before, response.body)
    if commit in (SIGN_ON, COLLECTIONS):
        assert manage("shell", "-c", SECRET, env=now.env).stdout.splitlines()[-1] == CONNECTION["client_secret"]
    if commit == COLLECTIONS:
        text = "/get_relevant_documents?collection_names=hints&query=green+lever&k=1"
        (item,) = now.call("GET", text, key=written.key).body
        assert item["page_content"] == TEXT


def test_new_features_work_on_old_data(upgraded: tuple[str, Written, Stack]):
    _, written, now = upgraded
    text = "/load_text_to_collection?collection_name=new&doc_id=first"
    response = now.call("POST", text, {"text": TEXT, "metadata": {}, "wait": True}, key=written.key)
    task = now.call("POST", "/rest/v1/table/task", {"short_description": "New"}, key=written.key)

    assert (response.status, response.body["document_status"], task.status) == (201, "ready", 201)
