"""`manage.py benchmark_data ROWS`: makes the records; prints as JSON what the requests need to know of them."""

import dataclasses
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from bench.tableapi.project import data


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("rows", type=int)

    def handle(self, *_: Any, rows: int, **__: Any) -> None:
        self.stdout.write(json.dumps(dataclasses.asdict(data.make(rows))))
