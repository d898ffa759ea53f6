"""Files that are not a design get an error with a line, never a 500, and change nothing."""

import random
from typing import Any

import pytest
import yaml

from accounts.models import User
from tests.tableapi.world import ApiClient, api, errors_of

from .designs import DESIGN_URL, apply, export, plan, random_design

pytestmark = pytest.mark.django_db

BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"
FILES: dict[str, str | bytes] = {
    "empty": "\n",
    "comment": "# nothing",
    "scalar": "tables",
    "list": "- format: 1",
    "two documents": "format: 1\n---\nformat: 1\n",
    "syntax": "format: 1\ntables: [",
    "tab": "format: 1\n\ttables: []",
    "bomb": f"format: 1\n{BOMB}",
    "anchor": "format: &x 1",
    "merge": "format: 1\n<<: {complete: true}",
    "tag": "format: !!int 1",
    "python tag": "format: 1\ntables: !!python/object/apply:os.system ['true']",
    "duplicate name": "format: 1\nformat: 1",
    "missing format": "complete: true",
    "other format": "format: 2",
    "long number": f"format: {'9' * 5000}",
    "quoted number": "format: '1'",
    "text as boolean": "format: 1\ncomplete: yes",
    "unknown section": "format: 1\nusers: []",
    "complex name": "format: 1\n? [a]\n: 1",
    "mapping as list": "format: 1\ntables: {name: x}",
    "entry without names": "format: 1\ntables: [device]",
    "nested lists": f"format: 1\ntables: {'[' * 500}{']' * 500}",
    "nested mappings": f"format: 1\ntables: {'{a: ' * 500}{'}' * 500}",
    "NUL": 'format: 1\nroles: [{name: "a\\0b"}]',
    "surrogate": 'format: 1\nroles: [{name: "a\\ud800b"}]',
    "beyond Unicode": 'format: 1\nroles: [{name: "\\U00110000"}]',
    "control character": "format: 1\nroles: [{name: a\x01b}]",
    "Latin-1": "format: 1\nroles: [{name: ä}]".encode("latin-1"),
    "UTF-16": "format: 1".encode("utf-16"),
    "null name": "format: 1\nroles: [{name: null}]",
    "same role twice": "format: 1\nroles: [{name: a}, {name: a}]",
    "rule without roles": "format: 1\nrules: [{operation: read}]",
}


@pytest.fixture
def designer(alice: User) -> ApiClient:
    return api(alice, credential="key")


@pytest.mark.parametrize("name", FILES)
def test_file_that_is_not_a_design_is_refused(designer: ApiClient, name: str):
    text = FILES[name]
    for error in errors_of(apply(designer, text if isinstance(text, bytes) else text.encode())):
        assert error[:2] == (400, "invalid_design")


@pytest.mark.parametrize(
    "text",
    [
        "roles: [{name: ' a '}]",
        "roles: [{name: a, contains: [a]}]",
        "roles: [{name: a, contains: [b]}, {name: b, contains: [a]}]",
        "roles: [{name: a, contains: [missing]}]",
        f"roles: [{{name: {'a' * 500}}}]",
        "tables: [{name: a, label: A, parent: a}]",
        "tables: [{name: a, label: A, parent: b}, {name: b, label: B, parent: a}]",
        "tables: [{name: A-1, label: A}]",
        "tables: [{name: '', label: A}]",
        "tables: [{name: a, label: A, columns: [{name: c, label: C, type: nothing}]}]",
        "tables: [{name: a, label: A, columns: [{name: c, label: C, type: reference, reference_table: nothing}]}]",
        "tables: [{name: a, label: A, columns: [{name: c, label: C, type: string, indexed: true, max_length: 9999}]}]",
        "tables: [{name: a, label: A, columns: [{name: c, label: C, type: string, max_length: 0}]}]",
        "tables: [{name: a, label: A, columns: [{name: c, label: C, type: date, choices: [{value: '1', label: A}]}]}]",
        "tables: [{name: a, label: A, views: [{name: v, columns: [{path: nothing}]}]}]",
        "tables: [{name: a, label: A, rules: [{operation: fly, roles: []}]}]",
        "tables: [{name: a, label: A, rules: [{operation: read, roles: [], condition: '^^'}]}]",
        "tables: [{name: a, label: A, rules: [{operation: read, roles: [], column: missing}]}]",
        "tables: [{name: a, label: A, set_on_change: [{column: b, watched: c, set_to: x}]}]",
        "tables: [{name: a, label: A, shared_lists: [{name: l, query: '^^', roles: [itil]}]}]",
        "tables: [{name: sys_db_table, columns: [{name: x_a, label: A, type: string}]}]",
        "tables: [{name: missing, columns: [{name: c, label: C, type: string}]}]",
        "tables: [{name: missing, shared_lists: [{name: c, roles: [itil]}]}]",
        "rules: [{operation: read, roles: [], condition: ORDERBYx}]",
    ],
)
def test_design_that_cannot_be_applied_is_refused_with_its_line(designer: ApiClient, text: str):
    response = apply(designer, f"format: 1\n{text}\n")
    assert response.status_code == 422, response.content
    assert response.json()["errors"][0]["position"] == 2


def test_too_large_file_and_other_types_are_refused(designer: ApiClient):
    assert apply(designer, b"#" * (2 * 1024 * 1024 + 1)).status_code == 413
    assert designer.send("POST", f"{DESIGN_URL}/plan", b"{}").status_code == 415
    assert (
        designer.send("POST", f"{DESIGN_URL}/plan?prune=perhaps", b"#", {"Content-Type": "text/yaml"}).status_code
        == 400
    )


WRONG_VALUES: tuple[Any, ...] = (None, True, 7, -1, 1.5, "", "x", "x" * 3000, [], ["x"], [[]], {}, {"name": "x"})


def test_wrong_types_anywhere_are_never_a_server_error(designer: ApiClient):
    rng = random.Random(5)
    before = export(designer)
    for _ in range(120):
        design = {"format": 1, **random_design(rng.randrange(1000), table_count=2)}
        node: Any = design
        while True:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.15:
                break
            node = node[key]
        node[key] = rng.choice(WRONG_VALUES)
        response = plan(designer, yaml.safe_dump(design))
        assert response.status_code in (200, 400, 422), (design, response.content)
    assert export(designer) == before
