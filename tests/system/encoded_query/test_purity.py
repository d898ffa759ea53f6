"""The language imports only the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import system.encoded_query

FILES = sorted(Path(system.encoded_query.__file__).parent.glob("*.py"))
REACHES_OUT = {"socket", "ssl", "http", "urllib", "sqlite3", "subprocess", "asyncio", "os", "threading"}


def imported(tree: ast.Module) -> set[str]:
    """Packages named by absolute imports; relative ones stay within the language."""
    nodes = list(ast.walk(tree))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    far = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level > 1]
    return {name.partition(".")[0] for name in plain + named} | {f"..{name}" for name in far}


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_parser_imports_only_the_standard_library(file: Path) -> None:
    names = imported(ast.parse(file.read_text(encoding="utf-8")))
    assert names <= set(sys.stdlib_module_names) - REACHES_OUT


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_parser_evaluates_nothing(file: Path) -> None:
    # B45
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    assert {call.id for call in calls if isinstance(call, ast.Name)} & {
        "eval",
        "exec",
        "compile",
        "__import__",
    } == set()
