"""Upgrades: an earlier version writes data, then the current version starts on the same folder."""

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

FIRST_COMMIT, RECORDS_COMMIT, SIGN_ON_COMMIT, COLLECTIONS_COMMIT = "cc59739", "befb6af", "bb28704", "a4ece5e"
EARLIER_COMMITS = {
    FIRST_COMMIT: "before the areas",
    RECORDS_COMMIT: "with the Table API",
    SIGN_ON_COMMIT: "and single sign-on",
    COLLECTIONS_COMMIT: "and document collections",
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
READ_SECRET = "from sso.models import OidcSetting; print(OidcSetting.objects.get().decrypted_client_secret)"
TEXT = "To change the toner, open the front door and pull the green lever."


@dataclass
class WrittenData:
    """What the earlier version stored, and how it responded to reads."""

    key: str
    responses: dict[str, Any] = field(default_factory=dict)


def check_out(commit: str, folder: Path) -> Path:
    """Checks out the project at a commit; it runs with the packages that are installed now."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip("this clone does not contain the earlier commits")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def write_data(stack: Stack, commit: str) -> WrittenData:
    key = manage("key", "admin", "kept", "--days", "0", env=stack.env, cwd=stack.code_folder).stdout.strip()
    written_data = WrittenData(key)
    requests: list[tuple[str, str, Any]] = []
    if commit != FIRST_COMMIT:
        requests += [
            ("POST", "/rest/v1/table/sys_db_table", {"name": "machine", "label": "Machine"}),
            ("POST", "/rest/v1/table/task", {"short_description": "Kept", "priority": "2"}),
        ]
    if commit in (SIGN_ON_COMMIT, COLLECTIONS_COMMIT):
        requests.append(("POST", "/rest/v1/table/oidc_setting", CONNECTION))
    if commit == COLLECTIONS_COMMIT:
        document = {"text": TEXT, "metadata": {"kind": "hint"}, "wait": True}
        requests.append(("POST", "/load_text_to_collection?collection_name=hints&doc_id=toner", document))
    for method, path, body in requests:
        response = stack.call(method, path, body, key=key)
        assert response.status == 201, (path, response)
    written_data.responses = {path: stack.call("GET", path, key=key).body for path in readable_paths(commit)}
    return written_data


def readable_paths(commit: str) -> list[str]:
    """The paths whose responses contain all data."""
    paths = ["/api/me"]
    if commit != FIRST_COMMIT:
        paths += [f"/rest/v1/table/{name}?sysparm_query=ORDERBYsys_id" for name in ("task", "user", "sys_acl")]
    if commit in (SIGN_ON_COMMIT, COLLECTIONS_COMMIT):
        paths.append("/rest/v1/table/oidc_setting")
    if commit == COLLECTIONS_COMMIT:
        paths.append("/get_content_by_tag?collection_name=hints&tag_info=kind=hint")
    return paths


def keeps_old_values(old: Any, new: Any) -> bool:
    """Whether the new response contains all old values; records may have additional fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(name in new and keeps_old_values(value, new[name]) for name, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(keeps_old_values, old, new))
    return bool(old == new)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(commit, id=description, marks=[] if commit == COLLECTIONS_COMMIT else pytest.mark.nightly)
        for commit, description in EARLIER_COMMITS.items()
    ],
)
def upgraded_stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, WrittenData, Stack]]:
    root = tmp_path_factory.mktemp("upgraded")
    data_folder = root / "data"
    earlier_stack = Stack(data_folder)
    earlier_stack.code_folder = check_out(request.param, root / "code")
    try:
        earlier_stack.start().wait_until_up()
        written_data = write_data(earlier_stack, request.param)
        assert earlier_stack.stop() == 0
    finally:
        earlier_stack.end()
    upgraded = Stack(data_folder)
    upgraded.port, upgraded.env["SVC_PORT"] = earlier_stack.port, str(earlier_stack.port)
    try:
        yield request.param, written_data, upgraded.start().wait_until_up()
        assert upgraded.stop() == 0
    finally:
        upgraded.end()


def test_upgrade_keeps_all_data(upgraded_stack: tuple[str, WrittenData, Stack]):
    commit, written_data, stack = upgraded_stack

    eventually(lambda: stack.get("/readyz") == 200)
    for path, response_before in written_data.responses.items():
        response = stack.call("GET", path, key=written_data.key)
        assert response.status == 200
        assert keeps_old_values(response_before, response.body), (path, response_before, response.body)
    if commit in (SIGN_ON_COMMIT, COLLECTIONS_COMMIT):
        assert manage("shell", "-c", READ_SECRET, env=stack.env).stdout.splitlines()[-1] == CONNECTION["client_secret"]
    if commit == COLLECTIONS_COMMIT:
        path = "/get_relevant_documents?collection_names=hints&query=green+lever&k=1"
        (passage,) = stack.call("GET", path, key=written_data.key).body
        assert passage["page_content"] == TEXT


def test_new_features_work_on_old_data(upgraded_stack: tuple[str, WrittenData, Stack]):
    _, written_data, stack = upgraded_stack
    path = "/load_text_to_collection?collection_name=new&doc_id=first"
    response = stack.call("POST", path, {"text": TEXT, "metadata": {}, "wait": True}, key=written_data.key)
    task = stack.call("POST", "/rest/v1/table/task", {"short_description": "New"}, key=written_data.key)

    assert (response.status, response.body["document_status"], task.status) == (201, "ready", 201)
