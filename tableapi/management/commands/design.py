"""`manage.py design export|plan|apply`: writes the design as a file, and plans or applies one."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from system.errors import ServiceError
from system.records import acting_user
from tableapi.design_files import apply, export
from tableapi.read.context import Caller


class Command(BaseCommand):
    help = "Export tables, rules and the rest of the design as YAML, or plan or apply such a file."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for action in ("export", "plan", "apply"):
            arguments = actions.add_parser(action)
            arguments.add_argument("--login", required=True, help="The administrator on whose behalf it runs.")
            if action != "export":
                arguments.add_argument("file", type=Path, help="The design file; - reads standard input.")
                arguments.add_argument("--prune", action="store_true", help="Also delete what the file omits.")

    def handle(self, *_: Any, action: str, login: str, **arguments: Any) -> None:
        user = User.objects.find_by_exact_login(login)
        if user is None or not user.active:
            raise CommandError(f'There is no active user with the login "{login}".')
        try:
            with acting_user.acting_as(user.pk):
                if action == "export":
                    self.stdout.write(export.export_design(Caller.of(user)), ending="")
                else:
                    self._apply(Caller.of(user), is_dry_run=action == "plan", **arguments)
        except ServiceError as error:
            raise CommandError("\n".join(str(item["message"]) for item in error.as_items())) from None
        except OSError as error:
            raise CommandError(f"{arguments['file']}: {error.strerror}.") from None

    def _apply(self, caller: Caller, file: Path, *, prune: bool, is_dry_run: bool, **_: Any) -> None:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        plan = apply.apply_design(caller, data, prune=prune, is_dry_run=is_dry_run)
        for step in plan.shown_steps:
            self.stdout.write(f"{step}{f' (WIDENS RIGHTS: {step.widens})' if step.widens else ''}")
        self.stdout.write(f"{len(plan.steps)} steps{' (nothing was changed)' if is_dry_run else ''}")
