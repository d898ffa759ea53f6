"""`manage.py restore FILE`: replaces the database with a backup."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from config.maintenance import backup


class Command(BaseCommand):
    help = "Replace the database with a backup. The previous database is kept under a dated name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *_: Any, file: Path, **__: Any) -> None:
        old_name = backup.restore_backup(file)
        call_command("prepare")
        self.stdout.write(
            f"{file} was restored. The previous database is kept as {old_name}. Drop it when you no longer need it."
        )
