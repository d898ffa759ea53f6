"""Runs every command of the tutorial, in order, and compares the printed response."""

from __future__ import annotations

import json
import re
from typing import Any

from accounts import demo as demo_people
from config.env import ROOT
from tests.docs import curl
from tests.docs.test_collections import Typist
from tests.providers import demo
from tests.support.users import PASSWORD, make_user

PAGE = (ROOT / "docs/tutorial/first-steps.md").read_text()


def test_commands_work_as_printed(db: Any):
    make_user("admin", "admin")
    demo_people.create_demo_users(lambda: PASSWORD)
    steps = re.findall(r"```\n(curl .*?)```\n+```json\n(.*?)```", PAGE, re.S)
    assert len(re.findall(r"^curl ", PAGE, re.M)) == sum(len(curl.commands(text)) for text, _ in steps) >= 8

    for text, printed in steps:
        for command, shown in zip(curl.commands(text), [*curl.json_values(printed)], strict=True):
            answer = curl.run(command)
            assert Typist().is_same(shown, json.loads(answer.content)), answer.content.decode()


def test_demo_provider_user_gets_the_documented_roles():
    (anna,) = [person for person in demo.PEOPLE if person["login"] == "anna"]

    assert all(f"`{role}`" in PAGE for role in anna["roles"]) and f"`{demo.PASSWORD}`" in PAGE
