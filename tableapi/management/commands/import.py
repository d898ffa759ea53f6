"""`manage.py import TABLE FILE --login LOGIN`: imports a file with the rights of a user, in this process."""

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.datastructures import MultiValueDict

from accounts.models import User
from system.errors import ServiceError
from system.http.uploads import PART_BYTES
from tableapi.imports import jobs, options, steps
from tableapi.imports.options import ImportOptions
from tableapi.models import Import
from tableapi.read.context import Caller

PROGRESS_INTERVAL_S = 1.0


class Command(BaseCommand):
    help = "Import a CSV file, an XLSX workbook or JSON lines into a table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("table")
        parser.add_argument("file", type=Path)
        parser.add_argument("--login", required=True, help="The user whose rights the import has.")
        for option in fields(ImportOptions):
            settings: dict[str, Any] = {"action": "store_const", "const": "1"} if option.default is False else {}
            parser.add_argument(
                f"--{option.name.replace('_', '-')}", default="", help=option.metadata["description"], **settings
            )

    def handle(self, *_: Any, table: str, file: Path, login: str, **arguments: Any) -> None:
        user = User.objects.find_by_exact_login(login)
        if user is None:
            raise CommandError(f'There is no user with the login "{login}".')
        try:
            raw = MultiValueDict({name: [value] for name, value in arguments.items()})
            job = self._run(Caller.of(user), table, file, options.parse_options(raw))
        except ServiceError as error:
            raise CommandError("\n".join(str(item["message"]) for item in error.as_items())) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from None
        state = jobs.entry(job, steps.MAX_STORED_ERRORS)
        for item in state["line_errors"]:
            for reason in item["errors"]:
                text = ": ".join(filter(None, (reason.get("field"), reason.get("value"), reason["message"])))
                self.stderr.write(f"Line {item['line']}: {text}")
        counts = ", ".join(f"{state[name]:,} {name}" for name in jobs.SHOWN_COUNTS)
        self.stdout.write(f"{state['sys_id']}: {counts}{' (dry run)' if state['dry_run'] else ''}")
        if state["error"] or state["failed"]:
            raise CommandError("\n".join(item["message"] for item in state["error"] or ()) or "Lines have errors.")

    def _run(self, caller: Caller, table: str, file: Path, import_options: ImportOptions) -> Import:
        options.check(caller, table, import_options)
        with file.open("rb") as content:
            job = jobs.start(caller, table, import_options, File(content).chunks(PART_BYTES), file.name, "")
        while job.is_active:
            started_at = time.monotonic()
            steps.process(job.pk, deadline=started_at + PROGRESS_INTERVAL_S)
            job.refresh_from_db()
            if job.is_active:
                self.stdout.write(f"{job.state}: {job.counts.get('processed', 0):,} of {job.line_count:,} lines")
                # A worker runs the import, or its last step failed.
                time.sleep(max(0.0, started_at + PROGRESS_INTERVAL_S - time.monotonic()))
        return job
