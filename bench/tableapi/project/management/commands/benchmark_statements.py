"""`manage.py benchmark_statements FILE`: writes there, pickled, the statement of each request that stdin names."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from bench.tableapi.project import statements


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *_: Any, file: Path, **__: Any) -> None:
        asked = json.load(sys.stdin)
        found = [statements.of_request(path, asked["key"]) for path in asked["paths"]]
        file.write_bytes(pickle.dumps(found))
