"""`manage.py key LOGIN NAME`: creates an access key for a script."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import Role, User

MAX_DAYS = 36_500
MAX_NAME_LENGTH = 100


class Command(BaseCommand):
    help = "Create an access key and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("name")
        parser.add_argument(
            "--days",
            type=int,
            default=access_keys.DEFAULT_LIFETIME.days,
            help="days until the key expires (default: %(default)s; 0 for no expiry)",
        )
        parser.add_argument("--role", action="append", default=[], help="limit the key to this role; can be repeated")
        parser.add_argument("--read-only", action="store_true", help="create a key that cannot change anything")
        parser.add_argument("--mcp-writes", action="store_true", help="create a key that may write through MCP")

    def handle(self, *_: Any, login: str, name: str, days: int, role: list[str], **options: Any) -> None:
        if not 0 <= days <= MAX_DAYS:
            raise CommandError(f"--days must be between 0 (no expiry) and {MAX_DAYS}.")
        if not name.strip() or len(name) > MAX_NAME_LENGTH:
            raise CommandError(f"The name must have at most {MAX_NAME_LENGTH} characters and must not be blank.")
        user = User.objects.find_by_exact_login(login)
        if user is None:
            raise CommandError(f'There is no user with the login "{login}".')
        role_ids = dict(Role.objects.filter(name__in=role).values_list("name", "sys_id"))
        if unknown_roles := sorted(set(role) - set(role_ids)):
            raise CommandError(f"Unknown roles: {', '.join(unknown_roles)}.")
        expires_at = timezone.now() + timedelta(days=days) if days else None
        for role_name in sorted({name for name in role if not user.has_role(name)}):
            self.stderr.write(f"{user.login} does not have the role {role_name}, so the key does not have it either.")
        limits = {option: options.get(option, False) for option in ("read_only", "mcp_writes")}
        self.stdout.write(
            access_keys.create_key(user, name, expires_at=expires_at, scope=list(role_ids.values()), **limits)
        )
