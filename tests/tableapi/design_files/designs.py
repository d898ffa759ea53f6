"""Generates random designs as YAML, and sends files to the endpoints."""

import random
from typing import Any

import yaml

from tests.tableapi.world import ApiClient

DESIGN_URL = "/rest/v1/design"
YAML_HEADERS = {"Content-Type": "application/yaml"}
EMPTY = "format: 1\ncomplete: true\n"
SIMPLE_TYPES = ("string", "text", "integer", "decimal", "boolean", "date", "datetime", "json", "wysiwyg", "email")
TEXTS = (
    "Name",
    "no",
    "1",
    "true",
    "ä „x“ #: -",
    "null",
    "  spaces  ",
    "two\nlines",
    "[a]",
    "2026-01-02",
    "'",
    '"',
    "🙂",
)


def export(client: ApiClient) -> str:
    response = client.get(DESIGN_URL)
    assert response.status_code == 200, response.content
    return str(response.content.decode())


def plan(client: ApiClient, design: Any, prune: int = 0) -> Any:
    return _send(client, "plan", design, prune)


def apply(client: ApiClient, design: Any, prune: int = 0) -> Any:
    return _send(client, "apply", design, prune)


def _send(client: ApiClient, action: str, design: Any, prune: int) -> Any:
    text = design if isinstance(design, str | bytes) else yaml.safe_dump({"format": 1, **design}, sort_keys=False)
    body = text.encode() if isinstance(text, str) else text
    return client.send("POST", f"{DESIGN_URL}/{action}?prune={prune}", body, YAML_HEADERS)


def steps_of(response: Any) -> list[tuple[str, str]]:
    assert response.status_code == 200, response.content
    return [(step["action"], step["name"]) for step in response.json()["data"]]


def random_design(seed: int, table_count: int) -> dict[str, Any]:
    rng = random.Random(seed)
    roles = [f"role {number}" for number in range(8)]
    tables = [_random_table(rng, number, roles) for number in range(table_count)]
    return {
        "complete": True,
        "roles": [
            {"name": name, "description": rng.choice(TEXTS), "contains": rng.sample(roles[:index], min(index, 2))}
            for index, name in enumerate(roles)
        ],
        "tables": tables,
        "rules": [_random_rule(rng, roles, ("", "*"), "") for _ in range(3)],
    }


def _random_table(rng: random.Random, number: int, roles: list[str]) -> dict[str, Any]:
    name = f"t{number}"
    columns = [_random_column(rng, f"{name}_c{index}", number) for index in range(rng.randint(1, 4))]
    columns.append({"name": f"{name}_state", "label": "State", "type": "choice", "choices": _random_choices(rng)})
    columns.append({"name": f"{name}_at", "label": "At", "type": "datetime", "read_only": rng.random() < 0.5})
    names = [column["name"] for column in columns]
    columns[0]["display"] = columns[0]["type"] == "string"
    parent = f"t{rng.randrange(number)}" if number and rng.random() < 0.4 else ""
    return {
        "name": name,
        "label": rng.choice(TEXTS),
        "parent": parent,
        "number_prefix": "NR" if rng.random() < 0.3 and not parent else "",
        "deferred_create": rng.random() < 0.1,
        "columns": columns,
        "views": [
            {"name": name, "columns": [{"path": path, "section": rng.choice(TEXTS)} for path in rng.sample(names, 2)]}
            for name in rng.sample(("short", "no", "a view"), rng.randint(0, 1))
        ],
        "rules": [_random_rule(rng, roles, ("", "*", *names), f"{name}_state") for _ in range(rng.randint(0, 3))],
        "set_on_change": [
            {"column": f"{name}_at", "watched": f"{name}_state", "value": "1", "set_to": "javascript:gs.now()"}
        ]
        * (rng.random() < 0.5),
        "shared_lists": [
            {
                "name": rng.choice(TEXTS).strip(),
                "query": f"{name}_state=1^ORDERBYsys_created_at",
                "columns": names[:2],
                "roles": roles[:1],
            }
        ]
        * (rng.random() < 0.5),
    }  # fmt: skip


def _random_column(rng: random.Random, name: str, number: int) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "label": rng.choice(TEXTS), "type": rng.choice(SIMPLE_TYPES)}
    column |= {"mandatory": rng.random() < 0.2, "read_only": rng.random() < 0.2}
    if column["type"] == "string":
        column |= {"unique": rng.random() < 0.2, "indexed": rng.random() < 0.2, "default_value": rng.choice(("", "no"))}
        column |= {"max_length": rng.randint(2, 200)} if rng.random() < 0.5 else {}
    if rng.random() < 0.2:
        column |= {
            "type": rng.choice(("reference", "list")),
            "reference_table": f"t{rng.randrange(max(number, 1) + 1)}",
        }
        column.pop("default_value", None), column.pop("max_length", None)
        column |= {"unique": False, "indexed": False}
    return column


def _random_choices(rng: random.Random) -> list[dict[str, str]]:
    values = [str(number) for number in range(1, rng.randint(3, 8))]
    rng.shuffle(values)
    return [{"value": value, "label": rng.choice(TEXTS)} for value in values]


def _random_rule(rng: random.Random, roles: list[str], columns: tuple[str, ...], state: str) -> dict[str, Any]:
    return {
        "operation": rng.choice(("create", "read", "write", "delete")),
        "column": rng.choice(columns),
        "roles": rng.sample(roles, rng.randint(0, 2)),
        "condition": f"{state}=1" if state and rng.random() < 0.5 else "",
        "admin_overrides": rng.random() < 0.5,
        "active": rng.random() < 0.8,
        "description": rng.choice(("", "", "Same", rng.choice(TEXTS))),
    }
