"""Runs curl commands of the documentation, parsed as by a shell, with the passwords of the tests."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from config.env import ROOT
from tests.support.users import PASSWORD

HOST = "127.0.0.1:8000"
LOGINS = {"$me": "admin", "$user": "demo.user", "demo.agent:$(cat var/secrets/demo-password)": "demo.agent"}


def split_commands(text: str) -> list[str]:
    """The curl commands of a block, without the assignments before them."""
    return [command for command in re.split(r"^(?=curl )", text, flags=re.M) if command.startswith("curl ")]


def run_command(command: str) -> Any:
    """Sends the request that curl would send, and returns the response."""
    arguments = iter(shlex.split(command.replace("\\\n", " "))[1:])
    url, login, fields, form_fields, content_type, is_get = "", "", [], {}, "", False
    for argument in arguments:
        match argument:
            case "-G":
                is_get = True
            case "-u":
                login = LOGINS[next(arguments)]
            case "-d" | "--data-urlencode":
                fields.append(next(arguments))
            case "-F":
                name, _, value = next(arguments).partition("=")
                form_fields[name] = _uploaded_file(value[1:]) if value.startswith("@") else value
            case "-H":
                content_type = next(arguments).removeprefix("Content-Type: ")
            case _:
                assert argument.startswith(f"http://{HOST}/"), argument
                url = argument.removeprefix(f"http://{HOST}")
    headers = {"Authorization": "Basic " + b64encode(f"{login}:{PASSWORD}".encode()).decode()}
    if is_get or not (fields or form_fields):
        return Client().get(url, dict(field.split("=", 1) for field in fields), headers=headers)
    if form_fields:
        return Client().post(url, form_fields, headers=headers)
    return Client().post(url, fields[0], content_type=content_type, headers=headers)


def _uploaded_file(path: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(path.rpartition("/")[2], (ROOT / path).read_bytes(), "application/octet-stream")


def json_values(text: str) -> Iterator[Any]:
    """Parses the consecutive JSON values of a block."""
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:].strip()
