"""`manage.py grant LOGIN ROLE`: grants a role, even if no administrator is left."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Role, User, UserRole


class Command(BaseCommand):
    help = "Grant a role to a user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("role")

    def handle(self, *args: Any, login: str, role: str, **options: Any) -> None:
        user = User.objects.find_by_exact_login(login)
        if user is None:
            raise CommandError(f'There is no user with the login "{login}".')
        role_record = Role.objects.filter(name=role).first()
        if role_record is None:
            names = ", ".join(Role.objects.values_list("name", flat=True))
            raise CommandError(f'There is no role named "{role}". Available roles: {names}.')
        _, is_new = UserRole.objects.get_or_create(user=user, role=role_record, source=UserRole.MANUAL)
        if not user.active:
            user.active = True
            user.save()
            self.stdout.write(f"Activated the account {login}.")
        self.stdout.write(f"{login} {'now has' if is_new else 'already had'} the role {role}.")
