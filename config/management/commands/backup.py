"""`manage.py backup FILE`: writes the whole database to one file while the service runs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config.maintenance import backup


class Command(BaseCommand):
    help = "Write a backup of the database. Store SVC_SECRET_KEYS separately. They are needed to decrypt secrets."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *_: Any, file: Path, **__: Any) -> None:
        backup.write_backup(file)
        self.stdout.write(f"The database was backed up to {file} ({file.stat().st_size:,} bytes).")
