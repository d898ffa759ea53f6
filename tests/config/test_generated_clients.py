"""Clients that other tools generate from /api/schema, and the retrievers of the documentation, call a running product.

The tools are installed for each test, because only these tests need them.
"""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.env import ROOT
from tests.config.stack import Stack, manage
from tests.providers.node import node_in_wheel, node_on_machine

pytestmark = [pytest.mark.stack, pytest.mark.nightly]
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
TYPESCRIPT_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")
PYTHON_PROGRAM = """
import sys
from generated import AuthenticatedClient
from generated.api.table_task import change_task, create_task, list_task
from generated.models import TableTaskAnswer, TableTaskCreate, TableTaskCreatePriority, TableTaskWrite, Task
from generated.models import TableTaskWritePriority


def only_task(answer: object) -> Task:
    assert isinstance(answer, TableTaskAnswer), answer
    (task,) = answer.data
    assert isinstance(task, Task)
    return task


client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
new_task = TableTaskCreate(short_description="From Python", priority=TableTaskCreatePriority.VALUE_2)
created = only_task(create_task.sync(client=client, body=new_task))
assert isinstance(created.sys_id, str)
change_task.sync(created.sys_id, client=client, body=TableTaskWrite(priority=TableTaskWritePriority.VALUE_0))
found = only_task(list_task.sync(client=client, sysparm_query="short_description=From Python"))
print(found.short_description, found.priority)
"""
TYPESCRIPT_PROGRAM = """
import createClient from "openapi-fetch";
import type { paths } from "./schema";

declare const process: { argv: string[] };

async function main() {
  const client = createClient<paths, "application/json">({
    baseUrl: process.argv[2], headers: { Authorization: `Bearer ${process.argv[3]}` },
  });
  const created = await client.POST("/rest/v1/table/task", {
    body: { short_description: "From TypeScript", priority: "3" },
  });
  if (created.error) throw new Error(created.error.errors[0].message);
  const found = await client.GET("/rest/v1/table/task", {
    params: { query: { sysparm_query: "short_description=From TypeScript" } },
  });
  console.log(found.data?.data[0].short_description, found.data?.data[0].priority);
}
main();
"""
SEARCH = "\nfor passage in {}:\n    print({})\n"


@pytest.fixture(scope="module")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("generated")).start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


@pytest.fixture
def key(running_stack: Stack) -> str:
    return manage("key", "admin", "generated", env=running_stack.env).stdout.strip()


@pytest.fixture
def schema(running_stack: Stack, key: str, tmp_path: Path) -> Path:
    request = urllib.request.Request(f"{running_stack.url}/api/schema", headers={"Authorization": f"Bearer {key}"})
    file = tmp_path / "schema.json"
    with urllib.request.urlopen(request, timeout=60) as response:
        file.write_bytes(response.read())
    return file


def run(*command: str, folder: Path) -> str:
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    output = completed.stdout + completed.stderr
    assert completed.returncode == 0, f"{command}\n{output[-3000:]}"
    return output


def environment_with(folder: Path, *packages: str) -> str:
    """A new environment with these packages; returns its Python."""
    uv = (sys.executable, "-m", "uv")
    run(*uv, "venv", "--quiet", "env", folder=folder)
    python = str(folder / "env" / "bin" / "python")
    run(*uv, "pip", "install", "--quiet", "--python", python, *packages, folder=folder)
    return python


def test_python_client(running_stack: Stack, key: str, schema: Path, tmp_path: Path):
    python = environment_with(tmp_path, PYTHON_GENERATOR, "mypy", "ruff")
    generator = str(Path(python).with_name("openapi-python-client"))
    output = run(
        "env", f"PATH={Path(python).parent}:/usr/bin:/bin", generator, "generate", "--path", str(schema),
        "--output-path", "generated", "--meta", "none", folder=tmp_path,
    )  # fmt: skip
    assert output.strip() == "Generating generated"  # no warnings
    (tmp_path / "program.py").write_text(PYTHON_PROGRAM)
    run(python, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py", folder=tmp_path)
    assert run(python, "program.py", running_stack.url, key, folder=tmp_path) == "From Python 1\n"


def test_typescript_client(running_stack: Stack, key: str, schema: Path, tmp_path: Path):
    found = node_on_machine() or node_in_wheel()
    assert found is not None
    node, npm = found
    (tmp_path / "package.json").write_text(json.dumps({"private": True}))
    run(*npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *TYPESCRIPT_PACKAGES, folder=tmp_path)
    modules = tmp_path / "node_modules"
    generated = run(
        node, str(modules / "openapi-typescript/bin/cli.js"), str(schema), "-o", "schema.ts", folder=tmp_path
    )
    assert "warn" not in generated.lower()
    (tmp_path / "program.ts").write_text(TYPESCRIPT_PROGRAM)
    options = {"strict": True, "module": "commonjs", "target": "es2022", "lib": ["es2022", "dom"], "types": []}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["program.ts"]}))
    run(node, str(modules / "typescript/bin/tsc"), folder=tmp_path)
    assert run(node, "program.js", running_stack.url, key, folder=tmp_path) == "From TypeScript 3\n"


@pytest.mark.parametrize(
    ("page", "package", "call"),
    [
        ("langchain", "langchain-core", ("retriever.invoke(QUERY)", "passage.page_content, passage.metadata")),
        ("llamaindex", "llama-index-core==0.14.25", ("retriever.retrieve(QUERY)", "passage.text, passage.metadata")),
    ],
)
def test_retrievers_of_the_documentation(
    running_stack: Stack, key: str, tmp_path: Path, page: str, package: str, call: tuple[str, str]
):
    body = {"text": f"The toner of {page} is red.", "metadata": {"type": page}}
    loaded = running_stack.call("POST", f"/load_text_to_collection?collection_name={page}", body, key=key)
    assert loaded.status == 201, loaded.body
    python = environment_with(tmp_path, package, "httpx")
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    definition, usage = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    construction = usage.partition("\n")[0].replace("http://127.0.0.1:8000", running_stack.url)
    construction = construction.replace("sb_…", key).replace("manuals", page)
    program = f"QUERY = 'red toner'\n{definition}\n{construction}" + SEARCH.format(*call)
    output = run(python, "-W", "ignore", "-c", program, folder=tmp_path)
    assert str(body["text"]) in output and f"'type': '{page}'" in output and "'doc_id'" in output
    asynchronous = call[0].replace("retrieve(", "aretrieve(").replace("invoke(", "ainvoke(")
    program += f"\nimport asyncio\nprint(len(asyncio.run({asynchronous})), 'found')\n"
    assert "1 found" in run(python, "-W", "ignore", "-c", program, folder=tmp_path)
