"""Signal receivers that clean up after a connection is deleted."""

from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from sso.models import OidcSetting
from sso.models.oidc_settings import set_welcome_page


@receiver(pre_delete, sender=OidcSetting)
def lock_for_change(sender: Any, instance: Any, **_: Any) -> None:
    OidcSetting.lock_for_change()
    # The stored version, which may be newer than this object.
    instance.before_deletion = OidcSetting.objects.filter(pk=instance.pk).first()


@receiver(post_delete, sender=OidcSetting)
def clean_up_connection(sender: Any, instance: Any, **_: Any) -> None:
    deleted_setting = instance.before_deletion
    if deleted_setting is not None:
        if deleted_setting.active:  # our choice: deleting the active record works like clearing Active
            set_welcome_page("")
        deleted_setting.remove_unused_certificates()
