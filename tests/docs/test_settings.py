"""The environment variables of `config.env` match their documentation."""

import re
from dataclasses import fields

from config.env import ROOT, Environment

VARIABLE_NAMES = {setting.metadata["name"] for setting in fields(Environment)}
SECRET_NAMES = {setting.metadata["name"] for setting in fields(Environment) if setting.metadata["is_secret"]}


def test_settings_page_lists_exactly_the_variables():
    rows = re.findall(r"^\| `([A-Z_]+)`( 🔑)? \|", (ROOT / "docs/reference/settings.md").read_text(), re.MULTILINE)

    assert {name for name, _ in rows} == VARIABLE_NAMES
    assert {name for name, secret_mark in rows if secret_mark} == SECRET_NAMES


def test_example_file_lists_exactly_the_variables():
    example_names = re.findall(r"^# ([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)

    assert sorted(example_names) == sorted(VARIABLE_NAMES)
