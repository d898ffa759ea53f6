"""Runs every request on the document collections page and in the README, and compares the printed response.

Responses use the notation of `test_table_api`. In addition, `"…"` matches any value. Curl commands are parsed
as by a shell.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from accounts import demo
from collections_app import demo_documents
from collections_app.extract.file_formats import FORMATS
from collections_app.http import parameters
from collections_app.ingest import worker
from collections_app.models import Version
from collections_app.models.documents import UNFINISHED_STATES
from collections_app.queue import leases
from collections_app.search import metadata_listing
from collections_app.urls import ENDPOINTS
from config.env import ROOT, Environment
from system.http import uploads
from tests.docs import curl
from tests.docs.test_table_api import ExampleRunner
from tests.support.users import PASSWORD, make_user

PAGE = (ROOT / "docs/reference/document-collections.md").read_text()
README = (ROOT / "README.md").read_text()
BLOCKS = re.compile(
    r"```http\n(?P<request>[A-Z]+ /.*?)```\n+```http\n(?P<response>\d{3} .*?)```"
    r'|```\nme="admin:\$\(cat var/secrets/admin-password\)"\n(?P<curl>curl .*?)```\n+```json\n(?P<printed>.*?)```'
    r"|(?P<worker><!-- the worker -->)",
    re.S,
)


class PlaceholderExampleRunner(ExampleRunner):
    def is_same_value(self, printed_value: Any, actual_value: Any) -> bool:
        return printed_value == "…" or super().is_same_value(printed_value, actual_value)


def run_worker() -> None:
    """Processes all unfinished versions, as a worker would."""
    for version in Version.objects.filter(state__in=UNFINISHED_STATES):
        token = leases.take_lease(version.pk)
        assert token is not None
        worker.process_version(version.pk, token, deadline=time.monotonic() + 30)


@pytest.fixture
def demo_users(db: Any) -> None:
    make_user("admin", "admin")
    demo.create_demo_users(lambda: PASSWORD)


def check_curl_commands(text: str, printed_json: str) -> None:
    for command, printed_value in zip(curl.split_commands(text), [*curl.json_values(printed_json)], strict=True):
        response = curl.run_command(command)
        is_same = PlaceholderExampleRunner().is_same_value(printed_value, json.loads(response.content))
        assert is_same, response.content.decode()


def test_examples_return_the_printed_responses(demo_users: None):
    runner = PlaceholderExampleRunner()
    for step in BLOCKS.finditer(PAGE):
        if step["worker"]:
            run_worker()
        elif step["curl"]:
            check_curl_commands(step["curl"], step["printed"])
        else:
            try:
                runner.check_response(step["response"], runner.send_request(step["request"]))
            except (AssertionError, KeyError) as error:
                raise AssertionError(f"{step['request']}\n\nprinted:\n{step['response']}\nerror: {error}") from None


def test_every_request_has_a_response():
    steps = list(BLOCKS.finditer(PAGE))

    assert len(re.findall(r"```http\n[A-Z]+ /", PAGE)) == len([step for step in steps if step["request"]]) > 12
    assert len(re.findall(r"^curl ", PAGE, re.M)) == len([step for step in steps if step["curl"]]) >= 2


def test_page_names_every_supported_format():
    sentence = re.search(r"Supported files: (.+?) in any", " ".join(PAGE.split()))

    assert sentence and re.split(r", | and ", sentence[1]) == [format.label for format in FORMATS.values()]


def test_page_describes_the_demo_collection():
    """The requests of the page run with the demo users but without the demo documents."""
    list_section = PAGE.partition("GET /get_list_of_collection")[2].partition("DELETE /")[0]

    assert f"*{demo_documents.COLLECTION_NAME}* in this list" in list_section


def test_readme_commands_return_the_printed_responses(demo_users: None):
    (step,) = [match for match in BLOCKS.finditer(README) if match["curl"]]

    assert step["curl"].count("curl ") >= 2
    check_curl_commands(step["curl"], step["printed"])


def test_every_filter_can_be_parsed():
    table = PAGE.partition("| Filter | Finds |")[2].partition("\n\n")[0]
    filters = re.findall(r"^\| `([^`]+)` \|", table, re.M)

    assert len(filters) >= 5
    for filter_text in filters:
        assert parameters.read_filter(parameters.RequestParameters({"metadata": [filter_text]}), "metadata")


def test_endpoint_table_has_every_parameter():
    rows = dict(re.findall(r"^\| `/(\w+)` \| [^|]+ \| ([^|]+) \|", PAGE, re.M))

    assert set(rows) == set(ENDPOINTS)
    for name, view in ENDPOINTS.items():
        parameter_names = set(view.parameter_names) or (
            {"file", *load_parameter_names()} if name.startswith("load") else set()
        )
        assert set(re.findall(r"`(\w+)`", rows[name])) == parameter_names, name


def load_parameter_names() -> tuple[str, ...]:
    from collections_app.http import load_requests

    return load_requests.PARAMETER_NAMES


def test_error_table_has_every_code():
    documented_codes = {code for _, code in re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.M)}
    source_text = "".join(path.read_text() for path in (ROOT / "collections_app").rglob("*.py"))

    assert set(re.findall(r'\bcode ?= ?"(\w+)"', source_text)) - documented_codes == set()


def test_limits_match_the_code():
    environment = Environment()
    for limit in (
        parameters.MAX_COLLECTIONS,
        parameters.MAX_K,
        metadata_listing.MAX_DOCUMENTS,
        metadata_listing.MAX_CHARACTERS,
    ):
        assert f"{limit:,}" in PAGE
    assert f"up to {environment.file_limit_mb} MB" in PAGE and f"up to {environment.text_limit_mb} MB" in PAGE
    assert f"larger than {environment.wait_limit_mb} MB" in PAGE
    assert f"at most {environment.metadata_limit_kb} KB" in PAGE
    assert uploads.MAX_FIELD_LENGTH == 128 * 1024 and parameters.MAX_QUERY_BYTES == 8 * 1024
