"""`manage.py key LOGIN NAME`: makes an access key for a script."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import Role, User

MOST_DAYS = 36_500
LONGEST_NAME = 100


class Command(BaseCommand):
    help = "Make an access key and print it; it is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("name")
        parser.add_argument(
            "--days",
            type=int,
            default=access_keys.VALID_FOR.days,
            help="how long it is valid (default %(default)s, 0: no end)",
        )
        parser.add_argument("--role", action="append", default=[], help="act with this role only; may be repeated")

    def handle(self, *_: Any, login: str, name: str, days: int, role: list[str], **__: Any) -> None:
        if not 0 <= days <= MOST_DAYS:
            raise CommandError(f"--days goes from 0 (no end) to {MOST_DAYS}.")
        if not name.strip() or len(name) > LONGEST_NAME:
            raise CommandError(f"A name has 1 to {LONGEST_NAME} characters.")
        user = User.objects.spelled(login)
        if user is None:
            raise CommandError(f"There is no user with the login {login!r}.")
        scope = dict(Role.objects.filter(name__in=role).values_list("name", "sys_id"))
        missing = sorted(set(role) - set(scope))
        if missing:
            raise CommandError(f"There is no role {', '.join(missing)}.")
        expires_at = timezone.now() + timedelta(days=days) if days else None
        for name in sorted({each for each in role if not user.has_role(each)}):
            self.stderr.write(
                f"{user.login} does not hold the role {name}: while that is so, it gives the key nothing."
            )
        self.stdout.write(access_keys.make(user, name, expires_at=expires_at, scope=list(scope.values())))
