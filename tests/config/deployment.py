"""Reads Dockerfile, .dockerignore, compose.yaml and the proxy's configuration, for tests on machines without Docker."""

import fnmatch
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from config.env import ROOT


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, with its continuation lines."""

    keyword: str
    arguments: str

    def exec_form(self) -> list[str]:
        """The arguments of the exec form ["a", "b"]; the shell form is not JSON and fails."""
        return [str(argument) for argument in json.loads(self.arguments)]


def dockerfile_instructions() -> list[Instruction]:
    text = "\n".join(line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    joined_text = re.sub(r"\\\n\s*", " ", text)
    return [Instruction(*line.split(None, 1)) for line in joined_text.splitlines() if line.strip()]


def last_stage() -> list[Instruction]:
    instructions = dockerfile_instructions()
    return instructions[max(index for index, instruction in enumerate(instructions) if instruction.keyword == "FROM") :]


def is_in_context(path: str) -> bool:
    """Whether .dockerignore includes this file: the last matching pattern decides."""
    is_included = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern = line.lstrip("!")
        paths = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
        patterns = [pattern, pattern.removeprefix("**/")]
        names = [*paths, *(candidate.rsplit("/", 1)[-1] for candidate in paths if pattern.startswith("**/"))]
        if any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns):
            is_included = line.startswith("!")
    return is_included


def copied_paths() -> list[tuple[str, str]]:
    """Source and target of each COPY from the build context into the last stage."""
    pairs = [
        instruction.arguments.split()
        for instruction in last_stage()
        if instruction.keyword == "COPY" and not instruction.arguments.startswith("--")
    ]
    return [(source, target) for source, target in pairs]


def copy_image(target: Path) -> Path:
    """Copies what the image has in /app."""
    for source, _ in copied_paths():
        for path in [ROOT / source] if (ROOT / source).is_file() else sorted((ROOT / source).rglob("*")):
            relative_path = str(path.relative_to(ROOT))
            if path.is_file() and is_in_context(relative_path):
                (target / relative_path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target / relative_path)
    return target


def with_default_values(text: str) -> str:
    """Replaces each ${NAME:-default} of Compose with its default.

    >>> with_default_values("${SUBNET:-172.30.57}.10")
    '172.30.57.10'
    """
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def compose_file(name: str = "compose.yaml") -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(with_default_values((ROOT / name).read_text()))
    return document


def service_environment(service: dict[str, Any]) -> dict[str, str]:
    """The environment of a service in the Compose file, without the variables of the image."""
    example_text = (ROOT / f"{service['env_file']}.example").read_text()
    pairs = [line.partition("=")[::2] for line in example_text.splitlines() if line and not line.startswith("#")]
    return {**dict(pairs), **service["environment"]}


def image_environment() -> dict[str, str]:
    pairs = [
        word.partition("=")[::2]
        for instruction in last_stage()
        if instruction.keyword == "ENV"
        for word in instruction.arguments.split()
    ]
    return dict(pairs)


NGINX_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{};]|[^\s{};'"]+""")


def nginx_directives(*names: str) -> dict[str, list[list[str]]]:
    """The directives of nginx files by name, from all blocks; fails if a file is incomplete or lacks a semicolon."""
    directives: dict[str, list[list[str]]] = {}
    for name in names:
        text = re.sub(r"(?m)(?:^|\s)#.*$", "", (ROOT / "compose" / name).read_text())
        words: list[str] = []
        depth = 0
        for token in NGINX_TOKEN.findall(text):
            if token in "{};":
                assert words or token == "}", f"{name}: {token} without a directive"
                depth += {"{": 1, "}": -1, ";": 0}[token]
                if words:
                    assert token != "}", f"{name}: {words} ends without a semicolon"
                    directives.setdefault(words[0], []).append(words[1:])
                words = []
            else:
                words.append(token.strip("'").replace("\\'", "'"))
        assert depth == 0 and not words, f"{name} is cut off"
    return directives


def size_in_bytes(text: str) -> int:
    """
    >>> size_in_bytes("34m"), size_in_bytes("32k")
    (35651584, 32768)
    """
    return int(text[:-1]) * {"k": 1024, "m": 1024**2}[text[-1]]
