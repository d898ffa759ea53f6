"""Rules for the source code, mostly checked on its syntax trees."""

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.env import ROOT

PRODUCT_FOLDERS = ("config", "system", "accounts", "sso", "tableapi", "collections_app", "workspace", "agents")
SOURCE_FILES = sorted(
    path
    for folder in PRODUCT_FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)  # fmt: skip

# The modules that run their own SQL, and why. All others use models.
SQL_MODULES = {
    "accounts/authentication/login_attempts.py": "one atomic upsert counts an attempt",
    "accounts/models/slow_statement_limit.py": "an advisory lock lets one request of a caller run",
    "accounts/roles.py": "a recursive query follows contained roles",
    "collections_app/http/api/serializers.py": "the database lists its text search languages",
    "collections_app/search/known_metadata.py": "the metadata of documents is summarized in the database",
    "collections_app/search/metadata_listing.py": "matching documents are counted and paginated in one statement",
    "collections_app/documents/deletion.py": "documents are locked in one order, rows are deleted in batches",
    "collections_app/search/arrangement.py": "texts of passages are compared in the database",
    "collections_app/search/passages.py": "passages are read with their document, PostgreSQL highlights them",
    "collections_app/queue/leases.py": "one statement leases the next document, by the database clock",
    "collections_app/lexical/synonyms.py": "synonyms are compared with the query in each language",
    "collections_app/lexical/term_statistics.py": "the database extracts, weights and counts words",
    "collections_app/search/character_comparison.py": "the database reads the best passages up to a total length",
    "collections_app/search/keyword_retrieval.py": "the database ranks passages by keywords",
    "collections_app/metrics.py": "the queue is counted in one statement",
    "collections_app/search/vector_retrieval.py": "the nearest vectors are found in the database",
    "collections_app/vectors/reembedding.py": "chunks without a vector are found, vectors are stored and deleted",
    "collections_app/search/scope.py": "a search reads one snapshot",
    "collections_app/ingest/steps.py": "passages are stored in bulk, a version is published under locks",
    "collections_app/documents/storage.py": "locks serialize equal uploads, pieces are written and read in binary",
    "collections_app/vectors/model_choice.py": "the passages of a language are counted by the hash of its name",
    "collections_app/vectors/vector_indexes.py": "indexes are found, and built without blocking writes",
    "collections_app/vectors/chunk_vectors.py": "passages without a vector are found, and vectors are stored",
    "config/maintenance/backup.py": "databases are created and renamed",
    "config/scheduling/leader_scheduler.py": "an advisory lock chooses the leader",
    "config/maintenance/reencryption.py": "secrets in records of designed tables are encrypted with a new key",
    "config/management/commands/prepare.py": "the versions of the server and its extension are read",
    "sso/models/advisory_locks.py": "advisory locks serialize changes of a connection, sign-outs and refusals",
    "accounts/models/time_zones.py": "the database lists its time zones",
    "tableapi/write/designed_records.py": "records of designed tables are written",
    "tableapi/design/rule_hints.py": "ids in the condition of a rule are looked up",
    "tableapi/http/idempotency.py": "an advisory lock lets one of two equal requests run",
    "tableapi/write/custom_columns.py": "rows with custom columns of product records are written",
    "tableapi/write/references.py": "the id of a deleted record is removed from lists",
    "tableapi/write/product_records.py": "deferred constraints are checked before the response",
    "tableapi/attached/attachments.py": "pieces of files are written and read in binary",
    "tableapi/attached/records.py": "comments and attachments of a deleted record are marked in one statement",
    "tableapi/imports/steps.py": "an advisory lock lets one process run an import; progress is shown before a commit",
    "tableapi/notifications/change_scan.py": "one statement reads the change log and finds the recipients",
    "tableapi/notifications/listing.py": "the change log has no key for a model",
    "tableapi/webhooks/change_scan.py": "one statement reads the change log and finds the webhooks",
    "system/database_statements.py": "statements of the Table API are run",
    "tableapi/database/statement_runner.py": "statements of reads are run",
    "tableapi/ddl/schema_editor.py": "designed tables are created, changed and dropped",
    "tableapi/design/index_builder.py": "missing and invalid indexes are found",
    "system/background/hourly_counts.py": "a count is added to the stored one",
    "system/background/index_builds.py": "indexes are built without blocking writes, by one builder at a time",
    "system/background/change_partitions.py": "partitions are created and dropped",
    "system/records/change_log.py": "writes are logged in a partitioned table, which has no key for a model",
    "workspace/lists/saved_lists.py": "the lists that the roles of a user share are found in one statement",
    "workspace/models.py": "one statement stores a visit and deletes older ones",
    "system/plain_sql.py": "runs the statements of other modules in this list",
    "system/monitoring/health.py": "the version of the extension is read",
}
RAW_SQL_CALLS = {
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


def relative_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def called_names(path: Path) -> Iterator[tuple[str, int]]:
    """The name and line of each call."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            yield name, node.lineno


@pytest.mark.parametrize("path", SOURCE_FILES, ids=relative_name)
def test_raw_sql_is_only_used_in_listed_modules(path: Path):  # X02
    line_numbers = [line_number for name, line_number in called_names(path) if name in RAW_SQL_CALLS]

    if relative_name(path) in SQL_MODULES:
        assert line_numbers, "This module runs no SQL. Remove it from the list."
    else:
        assert line_numbers == []


@pytest.mark.parametrize("path", SOURCE_FILES, ids=relative_name)
def test_no_text_is_marked_safe(path: Path):  # X26
    names = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Attribute | ast.Name)}  # fmt: skip

    assert names & UNSAFE_MARKUP_FUNCTIONS == set()


def test_no_template_disables_escaping():  # X26
    allowed_templates = {"pages/field.html": "the help text of a form is the product's own"}
    unescaped_templates = {
        str(path.relative_to(ROOT / "templates"))
        for path in (ROOT / "templates").rglob("*.html")
        if "|safe" in path.read_text() or "autoescape off" in path.read_text()
    }

    assert unescaped_templates == set(allowed_templates)


def test_templates_load_no_external_resources():
    for path in [*(ROOT / "templates").rglob("*.html"), *(ROOT / "templates").rglob("*.css")]:
        text = path.read_text()
        assert not any(word in text for word in ("http://", "https://", 'src="//', "@import")), relative_name(path)


@pytest.mark.parametrize("path", SOURCE_FILES, ids=relative_name)
def test_every_module_has_a_docstring(path: Path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))

    is_empty_package = path.name == "__init__.py" and not path.read_text().strip()
    assert docstring or is_empty_package


def test_only_config_env_reads_the_environment():
    allowed_modules = {
        "config/env.py",
        "config/settings.py",
        "config/maintenance/backup.py",
        "config/wsgi.py",
        "config/celery.py",
        "agents/stdio.py",  # runs at the client
    }
    modules = {relative_name(path) for path in SOURCE_FILES if "os.environ" in path.read_text()}

    assert modules - allowed_modules - {name for name in modules if name.startswith("config/runtime/")} == set()


def test_advisory_locks_have_different_numbers():
    """Two features with one lock number would wait for each other."""
    lock_numbers = [number for path in SOURCE_FILES for number in re.findall(r"= (7_301_\d{3})\b", path.read_text())]

    assert len(lock_numbers) > 8 and len(lock_numbers) == len(set(lock_numbers))


def test_import_contracts_cover_all_packages():
    """The check would also succeed without any contracts."""
    arguments = dict(runpy.run_path(str(ROOT / "run"), run_name="run")["CHECKS"])["import contracts"]
    output = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout

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
