"""Links between the pages work, and the commands of the README exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from config.env import ROOT

PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda page: str(page.relative_to(ROOT))
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_target_exists(page: Path):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())

    missing_targets = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing_targets == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_named_command_exists(page: Path):
    text = page.read_text()
    existing_commands = set(get_commands()) | {"up"}
    help_text = subprocess.run([sys.executable, ROOT / "run", "--help"], capture_output=True, text=True).stdout

    manage_commands = set(re.findall(r"(?:manage\.py|\./run manage) ([a-z_]+)", text))
    run_commands = set(re.findall(r"\./run ([a-z][a-z-]*)", text))
    assert manage_commands - existing_commands == set()
    assert {word for word in run_commands if not re.search(rf"^  {word}\b", help_text, re.MULTILINE)} == set()


def test_every_dependency_has_a_reason():
    for name in ("requirements.in", "requirements-dev.in", "requirements-excluded.in"):
        lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith(("#", "-"))]
        assert [line for line in lines if "#" not in line] == []


def test_every_decision_is_listed():
    index = (ROOT / "docs/decisions/README.md").read_text()

    assert [page.name for page in (ROOT / "docs/decisions").glob("0*.md") if page.name not in index] == []
