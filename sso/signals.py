"""What follows when a connection is deleted: by its page, from the list, by the Table API or by a script."""

from typing import Any

from django.db.models.signals import post_delete, pre_delete

from sso.models import OidcSetting, activation


def take_turn(sender: Any, instance: Any, **_: Any) -> None:
    activation.take_turn()
    # As it is stored: whoever deletes it may have read it before somebody else changed it.
    instance.before_deletion = OidcSetting.objects.filter(pk=instance.pk).first()


def clean_up(sender: Any, instance: Any, **_: Any) -> None:
    before = instance.before_deletion
    if before is not None:
        activation.follow_deletion(before)
        before.let_go_of_keys()


def connect() -> None:
    pre_delete.connect(take_turn, sender=OidcSetting)
    post_delete.connect(clean_up, sender=OidcSetting)
