"""The sizes of the embedded PostgreSQL."""

from pathlib import Path

import pytest
from django.db import connection

from config import env_parsers
from config.runtime import postgres_sizes
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres

MB = 1024**2


def test_every_size_can_be_configured():
    assert tuple(postgres_sizes.default_sizes(0, 0)) == env_parsers.SIZES


def test_default_sizes_stay_within_the_bounds_on_any_machine():
    small_sizes, large_sizes = (
        postgres_sizes.default_sizes(256 * MB, 100 * MB),
        postgres_sizes.default_sizes(512 * 1024 * MB, 8 * 1024 * 1024 * MB),
    )

    assert (small_sizes["shared_buffers"], small_sizes["work_mem"], small_sizes["max_wal_size"]) == (
        "128MB",
        "4MB",
        "1024MB",
    )
    assert (large_sizes["shared_buffers"], large_sizes["work_mem"], large_sizes["max_wal_size"]) == (
        "1024MB",
        "32MB",
        "1024MB",
    )


def test_memory_limit_of_a_container_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine_memory_bytes = postgres_sizes.available_memory_bytes()
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text(f"{300 * MB}\n")

    monkeypatch.setattr(postgres_sizes, "CGROUP_LIMITS", (tmp_path / "max", tmp_path / "missing"))
    assert postgres_sizes.available_memory_bytes() >= machine_memory_bytes
    monkeypatch.setattr(postgres_sizes, "CGROUP_LIMITS", (tmp_path / "max", tmp_path / "limit"))
    assert postgres_sizes.available_memory_bytes() == 300 * MB


def test_configured_size_replaces_the_default(tmp_path: Path):
    arguments = Postgres(DataFolder(tmp_path), ["work_mem=7MB"]).command()

    sizes = [word for word in arguments if word.startswith("work_mem=")]
    assert len(sizes) == 2 and sizes[-1] == "work_mem=7MB"


@pytest.mark.django_db
def test_running_server_uses_the_sizes():
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [["shared_buffers", "work_mem"]])
        settings = dict(cursor.fetchall())

    expected_sizes = postgres_sizes.default_sizes(postgres_sizes.available_memory_bytes(), 0)
    assert int(settings["shared_buffers"]) * 8 // 1024 == int(expected_sizes["shared_buffers"].removesuffix("MB"))
    assert int(settings["work_mem"]) // 1024 == int(expected_sizes["work_mem"].removesuffix("MB"))
