"""Dockerfile, compose.yaml and the proxy's configuration, as far as they can be tested without Docker."""

import ipaddress
import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet

from config import env, production_checks
from config.env import ROOT
from config.runtime import up
from system import errors
from system.http import error_responses, request_body
from tests.config import deployment
from tests.config.stack import outer_environment

KNOWN_VARIABLES = {setting.metadata["name"] for setting in fields(env.Environment)} | {*env.secret_names()}
PYTHON_VARIABLES = {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}


def instructions_of(keyword: str) -> list[deployment.Instruction]:
    return [instruction for instruction in deployment.last_stage() if instruction.keyword == keyword]


# The image


def test_image_contains_only_locked_packages():
    instructions = deployment.dockerfile_instructions()
    run_commands = " && ".join(instruction.arguments for instruction in instructions if instruction.keyword == "RUN")

    assert run_commands.count(" install ") == 1
    for word in ("--require-hashes", "--only-binary :all:", "--requirement requirements.txt"):
        assert word in run_commands
    assert not [instruction for instruction in instructions if instruction.keyword == "ADD"]
    assert not [word for word in ("curl", "wget", "apt", "git ", "http") if word in run_commands]
    assert {instruction.arguments.split()[0] for instruction in instructions if instruction.keyword == "FROM"} == {
        "python:3.13-slim"
    }


def test_copied_files_exist_and_are_not_ignored():
    for source, target in deployment.copied_paths():
        assert (ROOT / source).exists(), source
        assert target in ("./", source)
        path = source if (ROOT / source).is_file() else f"{source}/anything"
        assert deployment.is_in_context(path), source
    assert deployment.is_in_context("requirements.txt")


PRIVATE_FILES = (
    ".env",
    ".git/config",
    "var/secrets/secret_key",
    "compose/secrets/secret_key",
    "compose/production.env",
)
SUPERFLUOUS_FILES = (".venv/bin/python", "tests/servers.py", "config/__pycache__/env.cpython-313.pyc")


@pytest.mark.parametrize("path", PRIVATE_FILES + SUPERFLUOUS_FILES)
def test_private_files_are_ignored(path: str):
    assert not deployment.is_in_context(path)


def test_every_package_of_the_product_is_copied():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

    assert {source for source, _ in deployment.copied_paths()} == {
        *contracts["root_packages"],
        "templates",
        "manage.py",
    }


def test_image_runs_as_an_ordinary_user_without_a_shell():
    (user,) = instructions_of("USER")
    (entrypoint,), (command,) = instructions_of("ENTRYPOINT"), instructions_of("CMD")

    assert user.arguments not in ("root", "0") and int(user.arguments.split(":")[0]) > 1000
    assert entrypoint.exec_form() == ["python", "manage.py"]
    assert command.exec_form() == ["up", "--only", "web"]
    assert [instruction.arguments for instruction in instructions_of("STOPSIGNAL")] == ["SIGTERM"]


def test_image_sets_only_variables_that_exist():
    variables = deployment.image_environment()

    assert set(variables) - PYTHON_VARIABLES <= KNOWN_VARIABLES
    assert env.read({name: value for name, value in variables.items() if name in KNOWN_VARIABLES}).is_production


def test_image_contents_are_enough_to_start(tmp_path: Path):
    app_folder = deployment.copy_image(tmp_path / "app")
    image_variables = {name: value for name, value in deployment.image_environment().items() if name != "PATH"}
    secrets = {
        "SECRET_KEY": "T8vYp2-qLr5xWn9cZk3mJd7hBf4gQs6aEu1oRi0t",
        "SVC_SECRET_KEYS": Fernet.generate_key().decode(),
    }
    server_urls = {"DATABASE_URL": "postgresql://a@127.0.0.1:1/a", "REDIS_URL": "redis://127.0.0.1:1"}
    variables = {
        **image_variables,
        **secrets,
        **server_urls,
        "SVC_BASE_URL": "https://a.example.com",
        "SVC_DATA_DIR": str(tmp_path),
    }

    completed = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=app_folder,
        env=outer_environment(**variables),
        capture_output=True,
        text=True,
    )

    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("System check identified no issues")


def test_health_check_fails_without_a_response(tmp_path: Path):
    (instruction,) = instructions_of("HEALTHCHECK")
    program, *arguments = json.loads(instruction.arguments.partition(" CMD ")[2])

    completed = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=outer_environment(SVC_PORT="1"),
        capture_output=True,
        text=True,
    )

    assert program == "python"
    assert (completed.returncode, completed.stderr) == (1, "")


# The services


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = deployment.compose_file()["services"]
    return services


@pytest.fixture(scope="module")
def own_services(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in services.items() if service.get("image") == "servicebase"}


def test_every_component_runs_once_and_web_twice(own_services: dict[str, dict[str, Any]]):
    default_command = deployment.last_stage()[-1].exec_form()
    commands = [service.get("command", default_command) for service in own_services.values()]

    assert all(command[:2] == ["up", "--only"] for command in commands)
    assert sorted(command[2] for command in commands) == sorted([*up.COMPONENTS, "web"])


def test_every_variable_of_every_service_exists_and_contains_no_secret(own_services: dict[str, dict[str, Any]]):
    declared_secrets = deployment.compose_file()["secrets"]
    for name, service in own_services.items():
        variables = deployment.service_environment(service)
        assert set(variables) <= KNOWN_VARIABLES, name
        assert not set(variables) & {
            setting.metadata["name"] for setting in fields(env.Environment) if setting.metadata["is_secret"]
        } - {"REDIS_URL"}
        for path in (value for variable, value in variables.items() if variable.endswith("_FILE")):
            assert path.removeprefix("/run/secrets/") in set(service["secrets"]) & set(declared_secrets)


def test_web_hosts_drain_requests_and_trust_only_the_proxy(
    own_services: dict[str, dict[str, Any]], services: dict[str, dict[str, Any]]
):
    proxy_address = services["proxy"]["networks"]["inside"]["ipv4_address"]
    hosts = dict(host_entry.split(":") for host_entry in services["proxy"]["extra_hosts"])
    (subnet,) = deployment.compose_file()["networks"]["inside"]["ipam"]["config"]
    for name, address in hosts.items():
        assert own_services[name]["networks"]["inside"]["ipv4_address"] == address
        assert int(own_services[name]["stop_grace_period"].removesuffix("s")) > up.DRAIN_S
    for service in own_services.values():
        assert deployment.service_environment(service)["SVC_TRUSTED_PROXIES"] == proxy_address
    network = ipaddress.ip_network(subnet["subnet"])
    assert all(ipaddress.ip_address(address) in network for address in (*hosts.values(), proxy_address))


def test_servers_have_volumes_and_an_internal_network(services: dict[str, dict[str, Any]]):
    database, broker = services["database"], services["broker"]

    assert database["image"] == "pgvector/pgvector:pg18"
    assert database["volumes"] == ["database:/var/lib/postgresql"]  # the data folder of version 18
    assert broker["image"] == "valkey/valkey:9" and broker["volumes"] == ["broker:/data"]
    broker_command = broker["command"]
    assert broker_command[broker_command.index("--appendonly") + 1] == "yes"
    assert broker_command[broker_command.index("--maxmemory-policy") + 1] == "noeviction"
    for server in (database, broker):
        assert set(server["networks"]) == {"data"} and "ports" not in server
    assert deployment.compose_file()["networks"]["data"]["internal"] is True


def test_created_secrets_are_valid_in_production(tmp_path: Path, own_services: dict[str, dict[str, Any]]):
    shutil.copytree(ROOT / "compose", tmp_path / "compose", ignore=shutil.ignore_patterns("secrets", "production.env"))
    completed = subprocess.run([tmp_path / "compose" / "make-secrets"], capture_output=True, text=True, check=True)
    folder = tmp_path / "compose" / "secrets"
    secrets_before = {path.name: path.read_text() for path in folder.iterdir()}

    variables = {**deployment.image_environment(), **deployment.service_environment(own_services["web-1"])}
    environment = env.read({name: value.replace("/run/secrets", str(folder)) for name, value in variables.items()})

    production_checks.refuse_unsafe_settings(environment)
    assert environment.is_production and [Fernet(key) for key in environment.secret_keys]
    assert urlsplit(environment.database_url or "").password == secrets_before["database_password"]
    assert environment.admin_password == secrets_before["admin_password"]
    assert folder.stat().st_mode & 0o077 == 0
    assert set(deployment.compose_file()["secrets"]) == set(secrets_before)
    assert all(value not in completed.stdout for value in secrets_before.values())
    subprocess.run([tmp_path / "compose" / "make-secrets"], capture_output=True, check=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == secrets_before


def test_created_secrets_are_ignored_by_git():
    ignored_paths = (ROOT / ".gitignore").read_text().splitlines()

    assert {"compose/secrets/", "compose/production.env"} <= set(ignored_paths)
    assert os.access(ROOT / "compose" / "make-secrets", os.X_OK)


# The proxy


@pytest.fixture(scope="module")
def proxy() -> dict[str, list[list[str]]]:
    return deployment.nginx_directives("nginx.conf", "service.conf", "errors.conf")


def test_proxy_has_the_limits_of_the_service(proxy: dict[str, list[list[str]]]):
    ((buffer_count, buffer_size),) = proxy["large_client_header_buffers"]
    ((max_body_size,),) = proxy["client_max_body_size"]

    assert int(buffer_count) * deployment.size_in_bytes(buffer_size) == up.MAX_HEADER_BYTES
    assert deployment.size_in_bytes(max_body_size) == request_body.MAX_DRAIN_BYTES
    assert proxy["underscores_in_headers"] == [["off"]]
    assert proxy["proxy_request_buffering"] == [["on"]]


def test_proxy_forwards_client_address_and_scheme(proxy: dict[str, list[list[str]]]):
    headers = dict(proxy["proxy_set_header"])

    assert headers["X-Forwarded-For"] == "$remote_addr"
    assert headers["X-Forwarded-Proto"] == "$scheme"
    assert headers["Host"] == "$http_host"


def test_proxy_uses_every_web_host_and_retries_on_another(
    proxy: dict[str, list[list[str]]], services: dict[str, dict[str, Any]]
):
    upstream_hosts = {words[0].removesuffix(":8000") for words in proxy["server"] if words}

    assert upstream_hosts == {host_entry.split(":")[0] for host_entry in services["proxy"]["extra_hosts"]}
    assert proxy["proxy_next_upstream"] == [["error", "timeout"]]
    mounted_paths = {volume.split(":")[0].removeprefix("./") for volume in services["proxy"]["volumes"]}
    assert mounted_paths == {"compose/nginx.conf", "compose/service.conf", "compose/errors.conf"}


def test_proxy_refuses_characters_that_the_web_server_refuses_without_a_body(proxy: dict[str, list[list[str]]]):
    assert proxy["if"] == [["($request_uri", "~", '[<>"]', ")"]]
    assert ["400", "=400", "/.proxy/malformed"] in proxy["error_page"]


def test_proxy_errors_equal_those_of_the_service(proxy: dict[str, list[list[str]]]):
    bodies = {int(status): json.loads(text[0]) for status, *text in proxy["return"] if text}

    assert {status: body["errors"][0]["code"] for status, body in bodies.items()} == {
        400: errors.BadRequest.code,
        413: errors.TooLarge.code,
        414: errors.QueryTooLong.code,
        503: errors.Unavailable.code,
    }
    for error in (errors.TooLarge(), errors.Unavailable()):
        assert bodies[error.status] == json.loads(error_responses.error_response(error).content)
    assert ["Retry-After", str(error_responses.RETRY_AFTER_S), "always"] in proxy["add_header"]


def test_tls_overlay_uses_a_certificate_from_the_secrets():
    overlay, server = deployment.compose_file("compose/tls.yaml"), deployment.nginx_directives("tls.conf")

    assert set(overlay["services"]) == {"proxy"}
    assert set(overlay["services"]["proxy"]["secrets"]) == set(overlay["secrets"])
    files = {server["ssl_certificate"][0][0], server["ssl_certificate_key"][0][0]}
    assert files == {f"/run/secrets/{name}" for name in overlay["secrets"]}
    assert server["include"] == [["service.conf"]]
    assert overlay["services"]["proxy"]["volumes"] == ["./compose/tls.conf:/etc/nginx/tls/tls.conf:ro"]
    assert ["/etc/nginx/tls/*.conf"] in deployment.nginx_directives("nginx.conf")["include"]
