"""`manage.py benchmark_profile`: profiles the requests that stdin describes as JSON, one kind after the other."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand

from bench.tableapi.project import profiling


class Command(BaseCommand):
    help = __doc__

    def handle(self, *_: Any, **__: Any) -> None:
        asked = json.load(sys.stdin)
        for case in asked["cases"]:
            ask = profiling.asking(case["method"], case["paths"], case["body"], asked["key"])
            self.stdout.write(f"== {case['name']} {case['what']}\n{profiling.profile(ask)}")
