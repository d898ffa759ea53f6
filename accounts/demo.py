"""Demo users for a first look: an agent and a requester, who share a random password."""

from collections.abc import Callable

from django.db import transaction

from accounts import roles
from accounts.models import Company, Group, Role, User, UserGroup, UserRole

DEMO_PREFIX = "demo."


@transaction.atomic
def create_demo_users(create_password: Callable[[], str]) -> None:
    """Creates the demo users, unless a login begins with `demo.`."""
    if User.objects.filter(login__startswith=DEMO_PREFIX).exists():
        return
    password = create_password()
    company, _ = Company.objects.get_or_create(name="Example Company")
    agent = User.objects.create_user(
        f"{DEMO_PREFIX}agent", password, first_name="Ada", last_name="Agent", email="agent@example.com", company=company
    )
    # Gets the hash of the agent, because hashing takes a quarter of a second.
    columns = {"first_name": "Uma", "last_name": "User", "email": "user@example.com", "company": company}
    User.objects.create(login=f"{DEMO_PREFIX}user", password=agent.password, **columns)
    UserRole.objects.create(user=agent, role=Role.objects.get(name=roles.ITIL))
    desk, _ = Group.objects.get_or_create(name="Service Desk")
    UserGroup.objects.create(user=agent, group=desk)
