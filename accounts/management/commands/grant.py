"""`manage.py grant LOGIN ROLE`: the way back when nobody can grant a role in the admin."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Role, User, UserRole


class Command(BaseCommand):
    help = "Give a user a role."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("role")

    def handle(self, *positional: Any, login: str, role: str, **options: Any) -> None:
        user = User.objects.spelled(login)
        if user is None:
            raise CommandError(f"There is no user with the login {login!r}.")
        found = Role.objects.filter(name=role).first()
        if found is None:
            names = ", ".join(Role.objects.values_list("name", flat=True))
            raise CommandError(f"There is no role {role!r}; these exist: {names}")
        _, is_new = UserRole.objects.get_or_create(user=user, role=found, source=UserRole.MANUAL)
        if not user.active:
            user.active = True
            user.save()
            self.stdout.write(f"{login} was not active and is now.")
        self.stdout.write(f"{login} {'now has' if is_new else 'already had'} the role {role}.")
