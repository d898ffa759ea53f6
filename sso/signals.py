"""Cleans up after the deletion of a connection, by whatever means it is deleted."""

from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from sso.models import OidcSetting
from sso.models.oidc_settings import set_welcome_page


@receiver(pre_delete, sender=OidcSetting)
def lock_for_change(sender: Any, instance: Any, **_: Any) -> None:
    OidcSetting.lock_for_change()
    # As it is stored: it may have been changed after this object was read.
    instance.before_deletion = OidcSetting.objects.filter(pk=instance.pk).first()


@receiver(post_delete, sender=OidcSetting)
def clean_up_connection(sender: Any, instance: Any, **_: Any) -> None:
    deleted_setting = instance.before_deletion
    if deleted_setting is not None:
        if deleted_setting.active:  # chosen: deleting the active record has the effect of clearing Active
            set_welcome_page("")
        deleted_setting.remove_unused_certificates()
