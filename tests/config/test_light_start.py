"""What a process imports before its first request; each import costs time and memory at every start."""

import os
import re
import subprocess
import sys

import pytest

from config.env import ROOT

# Slow imports that are rarely needed, so the first request that needs them imports them.
HEAVY_PACKAGES = (
    "numpy",
    "tokenizers",
    "onnxruntime",
    "wordllama",
    "openai",
    "lxml",
    "trafilatura",
    "pypdf",
    "openpyxl",
    "docx",
    "bs4",
)
# Libraries import these packages at start if they are installed.
OPTIONAL_IMPORTS = ("rich", "pygments", "transformers", "torch")

LOAD_TASKS = "from config.celery import app; app.loader.import_default_modules()"
START_COMMANDS = {
    "web": "import config.wsgi",
    "worker": f"{LOAD_TASKS}; import config.worker_pool",
    "beat": f"{LOAD_TASKS}; import config.scheduling.leader_scheduler",
}


@pytest.mark.parametrize("component", START_COMMANDS)
def test_rarely_used_libraries_are_not_imported_at_start(component: str):
    check = f"print([name for name in {HEAVY_PACKAGES!r} if name in sys.modules])"
    code = f"{START_COMMANDS[component]}; import sys; {check}"
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120
    )

    assert completed.stdout.strip() == "[]", completed.stdout + completed.stderr


def test_lock_has_no_package_that_libraries_import_if_installed():
    names = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))

    assert len(names) > 50 and names.isdisjoint(OPTIONAL_IMPORTS)
