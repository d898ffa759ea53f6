"""What the source code must not contain, read from its syntax trees."""

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.env import ROOT

PRODUCT_FOLDERS = ("config", "system", "accounts", "sso", "tableapi", "collections_app")
SOURCE_FILES = sorted(
    path
    for folder in PRODUCT_FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)  # fmt: skip

# Whoever runs SQL of their own, and why. Everything else goes through models.
SQL_MODULES = {
    "accounts/authentication/login_attempts.py": "one atomic upsert counts an attempt",
    "accounts/models/slow_callers.py": "an advisory lock lets one request of a caller run",
    "accounts/roles.py": "a recursive query follows contained roles",
    "collections_app/http/api/serializers.py": "languages of text search are those of the database",
    "collections_app/search/metadata_listing.py": "documents that match are counted and cut to a page in one statement",
    "collections_app/documents/deletion.py": "documents and collections are locked in one order, rows go in batches",
    "collections_app/search/highlights.py": "PostgreSQL marks the words that it takes for those of the query",
    "collections_app/search/passages.py": "passages are read with their document in one statement",
    "collections_app/queue/leases.py": "one statement takes the next document in turn, by the database's clock",
    "collections_app/lexical/term_statistics.py": "words are taken from texts, weighed and counted in the database",
    "collections_app/search/keyword_retrieval.py": "the best passages by words are scored in the database",
    "collections_app/metrics.py": "the queue is counted in one statement",
    "collections_app/search/vector_retrieval.py": "the nearest vectors are found in the database",
    "collections_app/vectors/reembedding.py": "chunks without a vector are looked for, vectors stored and deleted",
    "collections_app/search/scope.py": "a search sees one snapshot",
    "collections_app/ingest/steps.py": "passages are stored in bulk, a version comes to be searched under locks",
    "collections_app/documents/storage.py": "locks serialize equal uploads, pieces are written and read in binary",
    "collections_app/vectors/vector_indexes.py": "indexes are looked for, and built beside writers",
    "collections_app/vectors/chunk_vectors.py": "passages without a vector are looked for, and vectors stored",
    "config/maintenance/backup.py": "databases are made and renamed",
    "config/scheduling/leader_scheduler.py": "an advisory lock chooses the leader",
    "config/maintenance/reencryption.py": "secrets in records of designed tables are written under a new key",
    "config/management/commands/prepare.py": "the server and its extension are asked for their versions",
    "sso/models/advisory_locks.py": "advisory locks serialize changes of a connection, sign-outs and refusals",
    "tableapi/write/designed_records.py": "records of designed tables are written",
    "tableapi/design/rule_hints.py": "ids that a rule names are looked for",
    "tableapi/http/idempotency.py": "an advisory lock lets one of two equal requests through",
    "tableapi/write/references.py": "lists lose the id of a record that goes",
    "tableapi/write/system_records.py": "deferred constraints are asked before the answer",
    "system/database_statements.py": "statements of the Table API are run",
    "tableapi/database/statement_runner.py": "statements of reads are run",
    "tableapi/ddl/schema_editor.py": "designed tables are made, changed and dropped",
    "tableapi/design/index_builder.py": "indexes are looked for",
    "system/background/index_builds.py": "indexes are built beside writers, one builder at a time",
    "system/plain_sql.py": "statements of the ones above are run",
    "system/monitoring/health.py": "the extension is asked for its version",
}
SQL_FUNCTIONS = {
    "cursor",
    "raw",
    "extra",
    "execute",
    "executemany",
    "run_sql",
    "run_named_sql",
    "fetch_rows",
    "run_statement",
}
UNSAFE_MARKUP_FUNCTIONS = {"mark_safe", "SafeString", "SafeText"}


def names_in(path: Path) -> str:
    return str(path.relative_to(ROOT))


def called_names(path: Path) -> Iterator[tuple[str, int]]:
    """Every called name with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            yield name, node.lineno


@pytest.mark.parametrize("path", SOURCE_FILES, ids=names_in)
def test_raw_sql_is_only_used_in_listed_modules(path: Path):  # X02
    result = [line for name, line in called_names(path) if name in SQL_FUNCTIONS]

    if names_in(path) in SQL_MODULES:
        assert result, "it runs no SQL any more: take it out of the list"
    else:
        assert result == []


@pytest.mark.parametrize("path", SOURCE_FILES, ids=names_in)
def test_no_text_is_marked_safe(path: Path):  # X26
    names = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Attribute | ast.Name)}  # fmt: skip

    assert names & UNSAFE_MARKUP_FUNCTIONS == set()


def test_templates_disable_no_escaping():  # X26
    allowed = {"pages/field.html": "the help text of a form is the product's own"}
    result = {
        str(path.relative_to(ROOT / "templates"))
        for path in (ROOT / "templates").rglob("*.html")
        if "|safe" in path.read_text() or "autoescape off" in path.read_text()
    }

    assert result == set(allowed)


def test_templates_load_no_external_resources():
    for path in [*(ROOT / "templates").rglob("*.html"), *(ROOT / "templates").rglob("*.css")]:
        text = path.read_text()
        assert not any(word in text for word in ("http://", "https://", 'src="//', "@import")), names_in(path)


@pytest.mark.parametrize("path", SOURCE_FILES, ids=names_in)
def test_every_module_has_a_docstring(path: Path):
    message = ast.get_docstring(ast.parse(path.read_text()))

    is_empty_package = path.name == "__init__.py" and not path.read_text().strip()
    assert message or is_empty_package


def test_only_config_env_reads_the_environment():
    allowed = {
        "config/env.py",
        "config/settings.py",
        "config/maintenance/backup.py",
        "config/wsgi.py",
        "config/celery.py",
    }
    result = {names_in(path) for path in SOURCE_FILES if "os.environ" in path.read_text()}

    assert result - allowed - {name for name in result if name.startswith("config/runtime/")} == set()


def test_advisory_locks_have_different_numbers():
    """Two that shared one would wait for each other, or take the other's turn for theirs."""
    result = [number for path in SOURCE_FILES for number in re.findall(r"= (7_301_\d{3})\b", path.read_text())]

    assert len(result) > 8 and len(result) == len(set(result))


def test_import_contracts_cover_all_packages():
    """A command that finds nothing to do succeeds as well."""
    words = dict(runpy.run_path(str(ROOT / "run"), run_name="run")["CHECKS"])["import contracts"]
    output = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "Contracts: " in output and " 0 broken" in output


def test_spelling_is_consistent():
    pages = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    wrong_spelling = re.compile(
        r"Client Secret|Single [Ss]ign-[Oo]n \(SSO\)|Single Sign-On|[Gg]rantable by sign in|Log out"
    )

    assert {
        path.name: wrong_spelling.findall(path.read_text())
        for path in (*SOURCE_FILES, *pages)
        if wrong_spelling.search(path.read_text())
    } == {}
