"""Cleans up after the deletion of a connection, by whatever means it is deleted."""

from typing import Any

from django.db.models.signals import post_delete, pre_delete

from sso.models import OidcSetting, activation


def lock_for_change(sender: Any, instance: Any, **_: Any) -> None:
    activation.lock_for_change()
    # As it is stored: it may have been changed after this object was read.
    instance.before_deletion = OidcSetting.objects.filter(pk=instance.pk).first()


def clean_up_connection(sender: Any, instance: Any, **_: Any) -> None:
    before = instance.before_deletion
    if before is not None:
        activation.clear_welcome_page(before)
        before.remove_unused_keys()


def connect_receivers() -> None:
    pre_delete.connect(lock_for_change, sender=OidcSetting)
    post_delete.connect(clean_up_connection, sender=OidcSetting)
