"""Signal receivers for changes to users, roles and credentials."""

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.db.models import Func, Value
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User, UserRole, sessions
from system.background import hourly_counts


@receiver(user_logged_in)
def record_sign_in(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:
    # Not `save`: a sign-in must not change the record's version or history.
    User.objects.filter(pk=user.pk).update(last_login=timezone.now())
    hourly_counts.process_counts.add(hourly_counts.SIGN_INS)
    request.session[sessions.ADDRESS_KEY] = request.META.get("REMOTE_ADDR", "")[:45]
    request.session[sessions.BROWSER_KEY] = request.headers.get("User-Agent", "")[:200]


@receiver(post_delete, sender=Role)
def remove_role_references(sender: Any, instance: Role, **_: Any) -> None:
    """Removes a deleted role from the roles that contain it and from the scopes of keys."""
    # An empty scope would extend a key that is limited to this role to all roles.
    AccessKey.objects.filter(scope__contains=[instance.pk], scope__contained_by=[instance.pk]).delete()
    AccessKey.objects.filter(scope__contains=[instance.pk]).update(
        scope=Func("scope", Value(instance.pk), function="array_remove")
    )
    for role in Role.objects.filter(contains__contains=[instance.pk]):
        role.contains = [sys_id for sys_id in role.contains if sys_id != instance.pk]
        role.save()


def clear_key_cache(sender: Any, **_: Any) -> None:
    """Clears the cache of this process; the caches of others expire within a second."""
    access_keys.KEY_CACHE.clear()


for model in (User, Role, UserRole, AccessKey):
    post_save.connect(clear_key_cache, sender=model)
    post_delete.connect(clear_key_cache, sender=model)
