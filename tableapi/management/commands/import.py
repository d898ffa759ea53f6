"""`manage.py import TABLE FILE --login LOGIN`: imports a file with the rights of a user, in this process."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from accounts.models import User
from system.errors import ServiceError
from tableapi.imports import jobs, options, queue, steps
from tableapi.models import Import
from tableapi.read.context import Caller

PIECE_BYTES = 1024 * 1024
PROGRESS_INTERVAL_S = 1.0
RETRY_PAUSE_S = 1.0
TEXT_OPTIONS = (
    "mode",
    "key",
    "on-error",
    "mapping",
    "delimiter",
    "encoding",
    "sheet",
    "date-order",
    "decimal",
    "time-zone",
)
SWITCHES = ("dry-run", "clear-empty", "sysparm-import")


class Command(BaseCommand):
    help = "Import a CSV file, an XLSX workbook or JSON lines into a table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("table")
        parser.add_argument("file", type=Path)
        parser.add_argument("--login", required=True, help="The user whose rights the import has.")
        for name in TEXT_OPTIONS:
            parser.add_argument(
                f"--{name}", default="", help=f"As the parameter {name.replace('-', '_')} of the endpoint."
            )
        for name in SWITCHES:
            parser.add_argument(f"--{name}", action="store_true")

    def handle(self, *_: Any, table: str, file: Path, login: str, **arguments: Any) -> None:
        user = User.objects.find_by_exact_login(login)
        if user is None:
            raise CommandError(f'There is no user with the login "{login}".')
        try:
            state = self._run(Caller.of(user), table, file, arguments)
        except ServiceError as error:
            raise CommandError("\n".join(str(item["message"]) for item in error.as_items())) from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from None
        for item in state["line_errors"]:
            for reason in item["errors"]:
                text = ": ".join(filter(None, (reason.get("field"), reason["message"])))
                self.stderr.write(f"Line {item['line']}: {text}")
        counts = ", ".join(f"{state[name]:,} {name}" for name in jobs.SHOWN_COUNTS)
        self.stdout.write(f"{state['sys_id']}: {counts}{' (dry run)' if state['dry_run'] else ''}")
        if state["error"] or state["failed"]:
            raise CommandError("\n".join(item["message"] for item in state["error"] or ()) or "Lines have errors.")

    def _run(self, caller: Caller, table: str, file: Path, arguments: dict[str, Any]) -> dict[str, Any]:
        import_options = options.parse_options(_parameters(arguments))
        options.check(caller, table, import_options)
        format = options.FORMATS_BY_SUFFIX.get(file.suffix.lstrip(".").lower())
        if format is None:
            raise CommandError(f"{file}: expected a file that ends with {', '.join(options.FORMATS_BY_SUFFIX)}.")
        job = jobs.start(
            caller,
            table,
            pieces=_pieces(file),
            size=file.stat().st_size,
            file_name=file.name,
            format=format,
            import_options=import_options,
        )
        self.shown_at = time.monotonic()
        while jobs.is_active(job):
            if token := queue.take(job):
                steps.process(job.pk, token, on_progress=self._show_progress)
            else:
                time.sleep(RETRY_PAUSE_S)  # a worker has it, or it waits for the database
            job.refresh_from_db()
        return jobs.entry(job, QueryDict(f"sysparm_limit={steps.MAX_STORED_ERRORS}"))

    def _show_progress(self, job: Import) -> None:
        if time.monotonic() - self.shown_at > PROGRESS_INTERVAL_S:
            self.shown_at = time.monotonic()
            self.stdout.write(f"{job.state}: {job.counts.get('processed', 0):,} of {job.line_count:,} lines")


def _parameters(arguments: dict[str, Any]) -> MultiValueDict[str, str]:
    texts = {name: arguments[name] for name in (option.replace("-", "_") for option in TEXT_OPTIONS)}
    switches = {name: str(int(arguments[name])) for name in (option.replace("-", "_") for option in SWITCHES)}
    return MultiValueDict({name: [value] for name, value in {**texts, **switches}.items() if value})


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(PIECE_BYTES):
            yield piece
