"""What a process imports before its first request, which costs time and memory at every start."""

import os
import subprocess
import sys

import pytest

from config.env import ROOT

# Each takes long to load, and few requests need it: it comes with the first of them.
HEAVY = ("openai", "langchain_text_splitters", "transformers", "torch", "pypdf", "openpyxl", "docx", "bs4")


LOADS = {
    "web": "import config.wsgi; from django.urls import get_resolver; get_resolver().url_patterns",
    "worker": "from config.celery import app; app.loader.import_default_modules()",
}


@pytest.mark.parametrize("part", LOADS)
def test_rarely_used_libraries_are_not_imported_at_start(part: str):
    command = f"{LOADS[part]}; import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120
    )

    assert done.stdout.strip() == "[]", done.stdout + done.stderr
