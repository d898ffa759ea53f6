"""docs/reference/limits.md lists every limit with the value in the code; limits.txt maps limits to constants."""

import ast
import importlib
import re
from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import pytest

from config.env import ROOT, Environment, secret_names

PAGES = "".join(page.read_text() for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
PAGE = (ROOT / "docs/reference/limits.md").read_text()
DOCUMENTED_VALUES = dict(re.findall(r"^\| (.+?) \| ([\d,.]+(?: \w+)?) \|$", PAGE, re.M))
CONSTANTS_AND_LIMITS = re.findall(r"^([\w.\[\]]+)  (.+)$", (ROOT / "tests/docs/limits.txt").read_text(), re.M)

UNITS = {
    "": 1.0, "KB": 1024.0, "MB": 1024.0**2,
    "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0,
}  # fmt: skip
UNITS_BY_SUFFIX = {"_MS": 0.001, "_KB": UNITS["KB"], "_MB": UNITS["MB"], "_DAYS": UNITS["d"]}

PACKAGES = ("config", "system", "accounts", "sso", "tableapi", "collections_app", "workspace", "agents")
# Numbers that are not limits: versions, lock and signal numbers, exit codes, flags, units, formats, parts of a formula.
OTHER_CONSTANTS = {
    "system.admin.USER_VIEW",
    "system.admin_site.history_page.MAX_VALUE_LENGTH",
    "accounts.authentication.access_keys.CACHED_ROLE_BYTES",
    "accounts.authentication.access_keys.CACHED_USER_BYTES",
    "accounts.authentication.passwords.CACHED_PASSWORD_BYTES",
    "collections_app.extract.parsers.common.archive.ENCRYPTED_FLAG",
    "collections_app.extract.parsers.common.decoding.MAX_CHARACTER_BYTES",
    "collections_app.extract.parsers.common.visible_html.MAX_SPAN",
    "collections_app.extract.parsers.formats.docx.MAX_SPAN",
    "collections_app.extract.parsers.formats.docx.TITLE_LEVEL",
    "collections_app.extract.zip_archive.UTF_8_FLAG",
    "collections_app.extract.child_process.MEGABYTE",
    "collections_app.extract.parsers.formats.pdf_by_pdfium.MAX_IMAGES",
    "collections_app.extract.parsers.formats.pdf_by_pdfium.MAX_OUTLINE_LEVELS",
    "collections_app.extract.parsers.formats.pdf_by_pdfium.MIN_IMAGE_SHARE",
    "collections_app.extract.parsers.ocr_program.COLUMNS_AND_BLOCKS",
    "collections_app.extract.parsers.ocr_program.POINTS_PER_INCH",
    "collections_app.extract.parsers.ocr_program.RESOLUTION",
    "collections_app.extract.parsers.pdf.headings.MAX_HEADING_CHARACTERS",
    "collections_app.extract.parsers.pdf.headings.MAX_HEADING_LINES",
    "collections_app.extract.parsers.pdf.headings.MAX_LARGE_SHARE",
    "collections_app.extract.parsers.pdf.headings.MAX_LEVELS",
    "collections_app.extract.parsers.pdf.headings.MAX_NUMBER_LENGTH",
    "collections_app.extract.parsers.pdf.headings.MAX_SEARCHED_LINES",
    "collections_app.extract.parsers.pdf.headings.MIN_OUTLINE_ENTRIES",
    "collections_app.extract.parsers.pdf.headings.MIN_RELATIVE_SIZE",
    "collections_app.extract.parsers.pdf.headings.TITLE_START",
    "collections_app.extract.parsers.pdf.hyphens.MAX_WORD_LENGTH",
    "collections_app.extract.parsers.pdf.hyphens.MIN_COMPOUND_PART",
    "collections_app.extract.parsers.pdf.pages.MAX_CHARACTERS_OF_SCAN",
    "collections_app.extract.parsers.pdf.pages.MAX_REMAINDER_OF_SCAN",
    "collections_app.extract.parsers.pdf.pdfium_lines.MAX_PROSE_WIDTH",
    "collections_app.extract.parsers.pdf.pdfium_lines.MAX_SHORT_LINE",
    "collections_app.extract.parsers.pdf.pdfium_lines.MIN_CELL_GAP",
    "collections_app.extract.parsers.pdf.pdfium_lines.MIN_OBJECT_GAP",
    "collections_app.extract.parsers.pdf.pdfium_lines.SIZE_STEP",
    "collections_app.extract.parsers.pdf.running_lines.MAX_MARGIN",
    "collections_app.extract.parsers.pdf.running_lines.MAX_MARGIN_LINES",
    "collections_app.extract.parsers.pdf.running_lines.MAX_NUMBERS",
    "collections_app.extract.parsers.pdf.running_lines.MAX_PAGE_GAP",
    "collections_app.extract.parsers.pdf.running_lines.MAX_RELATIVE_SIZE",
    "collections_app.extract.parsers.pdf.running_lines.MIN_REPETITIONS",
    "collections_app.extract.parsers.pdf.running_lines.POSITION_TOLERANCE",
    "collections_app.extract.parsers.pdf.running_lines.ROMAN_DIGITS",
    "collections_app.extract.parsers.pdf.tables.COLUMN_TOLERANCE",
    "collections_app.extract.parsers.pdf.tables.MAX_AVERAGE_CELL",
    "collections_app.extract.parsers.pdf.tables.MAX_FIRST_LINE_DISTANCE",
    "collections_app.extract.parsers.pdf.tables.MAX_LINE_DISTANCE",
    "collections_app.extract.parsers.pdf.tables.MAX_ROW_DISTANCE",
    "collections_app.extract.parsers.pdf.tables.MIN_CELLS_OF_TWO_ROWS",
    "collections_app.extract.parsers.pdf.tables.MIN_ROWS",
    "collections_app.extract.parsers.pdf.tables.SAME_HEIGHT",
    "collections_app.lexical.term_statistics.B",
    "collections_app.lexical.term_statistics.K1",
    "collections_app.metadata.fields.INTEGER_BOUND",
    "collections_app.pages.metadata_rows.EMPTY_ROWS",
    "collections_app.metadata.operators.ONE_SECOND",
    "collections_app.embed.transformer.FATAL_ONLY",
    "collections_app.model_files.minilm.MAX_TOKEN_VALUE",
    "collections_app.model_files.minilm.MAX_WEIGHT",
    "collections_app.model_files.minilm.NORM_EPSILON",
    "collections_app.model_files.navec.DOCUMENT_WORDS",
    "collections_app.model_files.navec.MIN_FREQUENCY",
    "collections_app.model_files.onnx_format.IS_EXTERNAL",
    "collections_app.model_files.onnx_format.MAX_INLINE_BYTES",
    "collections_app.model_files.onnx_format.PAGE_BYTES",
    "collections_app.model_files.onnx_format.DATA_TYPES",
    "collections_app.models.documents.LEXICAL_DIMENSIONS",
    "collections_app.sources.web_page.NOT_MODIFIED",
    "collections_app.models.collections.DEFAULT_ALPHA",
    "collections_app.search.character_comparison.B",
    "collections_app.search.character_comparison.K1",
    "collections_app.search.keyword_retrieval.MAX_INDEXED_SHARE",
    "collections_app.search.vector_retrieval.VISIT_COST",
    "collections_app.search.character_comparison.MAX_CACHED_CHARACTERS",
    "collections_app.search.character_comparison.SCORE_DIGITS",
    "collections_app.search.character_comparison.SEQUENCE_LENGTH",
    "collections_app.search.character_comparison.USUAL_LENGTH",
    "collections_app.vectors.reembedding.ADVISORY_LOCK_ID",
    "collections_app.vectors.vector_indexes.ADVISORY_LOCK_ID",
    "collections_app.vectors.vector_indexes.CACHED_INDEX_BYTES",
    "config.scheduling.leader_scheduler.LEADER_LOCK_ID",
    "config.formats.en.formats.FIRST_DAY_OF_WEEK",
    "config.management.commands.prepare.ADVISORY_LOCK_ID",
    "config.management.commands.prepare.MIN_POSTGRES_VERSION",
    "config.runtime.unprivileged.CLONE_NEWUSER",
    "config.runtime.unprivileged.USER_ID",
    "sso.models.advisory_locks.CONNECTIONS_LOCK",
    "sso.models.advisory_locks.REFUSALS_LOCK",
    "sso.models.advisory_locks.SIGN_OUTS_LOCK",
    "sso.provisioning.sign_in.MAX_TRIES",
    "sso.tokens.token_check.MAX_TIME",
    "system.encoded_query.errors.MAX_TOKEN_LENGTH",
    "system.monitoring.metric_files.HEADER_BYTES",
    "system.sandbox.child.CLONE_NEWNET",
    "system.sandbox.child.CLONE_NEWUSER",
    "system.sandbox.child.LENGTH_BYTES",
    "system.sandbox.child.NOBODY_UID",
    "system.sandbox.child.OUT_OF_MEMORY_EXIT_CODE",
    "system.property_definitions.PROPERTY_OVERHEAD_BYTES",
    "tableapi.attached.pdf_page.MAX_SCALE",
    "tableapi.access.caller_view.BYTES_PER_COLUMN",
    "tableapi.design_files.document.FORMAT",
    "tableapi.models.webhooks.SECRET_BYTES",
    "tableapi.sql.select.BYTES_PER_PARAMETER",
    "tableapi.write.designed_records.MIN_NUMBER_DIGITS",
    "tableapi.ddl.schema_editor.DESIGN_LOCK_ID",
    "tableapi.design.index_builder.INDEX_BUILD_LOCK_ID",
    "tableapi.database.catalogue_loader.MAX_ATTEMPTS",
    "tableapi.setup.shipped_tables.SHIPPED_LEVEL",
    "tableapi.query.parsed_query.BYTES_PER_CONDITION",
    "tableapi.query.read_plan.BYTES_PER_FIELD",
    "tableapi.catalogue.value_readers.MAX_INTEGER",
    "tableapi.values.comparison.INTEGER_BOUND",
    "tableapi.catalogue.html.MAX_COPIED_CHARACTERS",
    "config.runtime.supervisor.BLOCK_BYTES",
    "config.runtime.web_server.FIRST_READ_S",
    "tableapi.http.responses.HASHED_PART",
    "workspace.lists.query_description.MAX_ID_LENGTH",
    "workspace.lists.query_description.MAX_RECORD_LABELS",
    "workspace.lists.query_description.MAX_SHOWN_VALUES",
    "tableapi.read.xlsx_writer.FIRST_EXACT_DAY",
    "tableapi.read.xlsx_writer.MAX_SAFE_DIGITS",
    "tableapi.read.xlsx_writer.MAX_SHEET_NAME_LENGTH",
    "workspace.lists.columns.MAX_AUTOMATIC_COLUMNS",
    "workspace.lists.columns.USUAL_WIDTH",
    "workspace.lists.list_contents.MAX_SEARCH_LABELS",
    "workspace.lists.list_contents.SELECT_WIDTH",
    "workspace.lists.rows.MAX_CELL_LENGTH",
    "workspace.lists.short_lists.MAX_RECENT",
    "workspace.lists.short_lists.MAX_ROWS",
    "workspace.lists.short_lists.MAX_SHORT_COLUMNS",
    "workspace.pages.home.MAX_NOTIFICATIONS",
    "tableapi.imports.cells.MAX_CACHED_CHARACTERS",
    "workspace.pages.search.MAX_ITEMS",
    "workspace.forms.submission.FINGERPRINT_LENGTH",
    "workspace.forms.controls.MAX_LINE_LENGTH",
    "workspace.forms.options.MAX_IDS_PER_QUERY",
    "tableapi.management.commands.import.PROGRESS_INTERVAL_S",
}


def read_limit(text: str) -> float:
    """The value of a table cell, in seconds, bytes or items.

    >>> read_limit("16 KB"), read_limit("15 min"), read_limit("2,000")
    (16384.0, 900.0, 2000.0)
    """
    match = re.fullmatch(r"([\d,.]+) ?([A-Za-z]*)", text.strip())
    assert match is not None, text
    return float(match.group(1).replace(",", "")) * UNITS[match.group(2)]


def constant_value(constant: str) -> float:
    """The value of a constant in the units of `read_limit`."""
    value = load_constant(constant)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BoundedSemaphore):
        return float(value._initial_value)  # type: ignore[attr-defined]
    return float(value) * next((factor for suffix, factor in UNITS_BY_SUFFIX.items() if suffix in constant.upper()), 1)


def load_constant(constant: str) -> Any:
    names, keys = constant.partition("[")[0].split("."), re.findall(r"\[(\w+)\]", constant)
    value: Any = None
    for index, name in enumerate(names):
        if is_dataclass(value):
            value = next(field.default for field in fields(value) if field.name == name)
        elif value is None or not hasattr(value, name):
            value = importlib.import_module(".".join(names[: index + 1]))
        else:
            value = getattr(value, name)
    for key in keys:
        value = value[int(key) if key.isdigit() else key]
    return value


@pytest.mark.parametrize(
    ("constant", "limit"), CONSTANTS_AND_LIMITS, ids=[constant for constant, _ in CONSTANTS_AND_LIMITS]
)
def test_limit_on_the_page_matches_the_code(constant: str, limit: str):
    assert read_limit(DOCUMENTED_VALUES[limit]) == constant_value(constant), limit


def test_every_row_of_the_page_is_checked():
    assert [*DOCUMENTED_VALUES] == [limit for _, limit in CONSTANTS_AND_LIMITS]


def is_numeric_expression(node: ast.expr) -> bool:
    """Whether an expression is a number: 3, 4 * 1024, timedelta(…), BoundedSemaphore(2), {"web": 5_000}."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.BinOp(left=left, right=right):
            return is_numeric_expression(left) and is_numeric_expression(right)
        case ast.Call(func=function, args=arguments):
            name = ast.unparse(function).rsplit(".", 1)[-1]
            return name == "timedelta" or (name == "BoundedSemaphore" and all(map(is_numeric_expression, arguments)))
        case ast.Dict(values=values):
            return bool(values) and all(map(is_numeric_expression, values))
    return False


def numeric_constants(path: Path) -> set[str]:
    """The constants of a module that are numbers, by their full names."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    constants = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and is_numeric_expression(node.value):
            constants |= {f"{module}.{target.id}" for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in constants if re.search(r"\.[A-Z][A-Z0-9_]*$", name)}


def test_every_limit_of_the_code_is_documented():
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]
    constants = set().union(*map(numeric_constants, paths))
    listed_constants = {constant.partition("[")[0] for constant, _ in CONSTANTS_AND_LIMITS}

    assert (
        "accounts.authentication.login_attempts.FAILURE_WINDOW" in constants
        and "config.database.connections.LOCK_TIMEOUT_MS" in constants
    )
    assert constants - listed_constants - OTHER_CONSTANTS == set()
    assert OTHER_CONSTANTS - constants == set()


def test_every_named_variable_exists():
    variables = {setting.metadata["name"] for setting in fields(Environment)} | {*secret_names()}

    assert set(re.findall(r"\bSVC_[A-Z_]*[A-Z]\b", PAGES)) - variables - {"SVC_TLS"} == set()


def test_every_named_file_exists():
    used_paths = set(re.findall(r"\bcompose/[\w./-]+\w", PAGES)) | set(re.findall(r"tests/[\w./]+\.py", PAGES))

    created_files = {name for name in used_paths if name.startswith(("compose/secrets", "compose/production.env"))}
    assert {name for name in used_paths - created_files if not (ROOT / name).exists()} == set()
