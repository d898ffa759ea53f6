"""The language imports only the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import system.encoded_query

SOURCE_FILES = sorted(Path(system.encoded_query.__file__).parent.glob("*.py"))
FORBIDDEN_MODULES = {"socket", "ssl", "http", "urllib", "sqlite3", "subprocess", "asyncio", "os", "threading"}


def imported_modules(tree: ast.Module) -> set[str]:
    """Packages named by absolute imports; relative ones stay within the language."""
    nodes = list(ast.walk(tree))
    plain_imports = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    from_imports = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    outer_imports = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level > 1]
    return {name.partition(".")[0] for name in plain_imports + from_imports} | {f"..{name}" for name in outer_imports}


@pytest.mark.parametrize("file", SOURCE_FILES, ids=[file.name for file in SOURCE_FILES])
def test_parser_imports_only_the_standard_library(file: Path) -> None:
    names = imported_modules(ast.parse(file.read_text(encoding="utf-8")))
    assert names <= set(sys.stdlib_module_names) - FORBIDDEN_MODULES


@pytest.mark.parametrize("file", SOURCE_FILES, ids=[file.name for file in SOURCE_FILES])
def test_parser_evaluates_nothing(file: Path) -> None:
    # B45
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    assert {call.id for call in calls if isinstance(call, ast.Name)} & {
        "eval",
        "exec",
        "compile",
        "__import__",
    } == set()
