"""Runs every command of the tutorial, in order, and compares the printed response."""

from __future__ import annotations

import json
import re
from typing import Any

from accounts import demo as demo_users
from config.env import ROOT
from tests.docs import curl
from tests.docs.test_collections import PlaceholderExampleRunner
from tests.providers import demo as demo_provider
from tests.support.users import PASSWORD, make_user

PAGE = (ROOT / "docs/tutorial/first-steps.md").read_text()


def test_commands_return_the_printed_responses(db: Any):
    make_user("admin", "admin")
    demo_users.create_demo_users(lambda: PASSWORD)
    steps = re.findall(r"```\n(curl .*?)```\n+```json\n(.*?)```", PAGE, re.S)
    assert len(re.findall(r"^curl ", PAGE, re.M)) == sum(len(curl.split_commands(text)) for text, _ in steps) >= 8

    for text, printed_json in steps:
        for command, printed_value in zip(curl.split_commands(text), [*curl.json_values(printed_json)], strict=True):
            response = curl.run_command(command)
            is_same = PlaceholderExampleRunner().is_same_value(printed_value, json.loads(response.content))
            assert is_same, response.content.decode()


def test_demo_provider_user_gets_the_documented_roles():
    (anna,) = [person for person in demo_provider.PEOPLE if person["login"] == "anna"]

    assert all(f"`{role}`" in PAGE for role in anna["roles"]) and f"`{demo_provider.PASSWORD}`" in PAGE
