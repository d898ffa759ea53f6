"""`manage.py reencrypt`: encrypts stored secrets with the newest key, so that old keys can be removed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.maintenance import reencryption


class Command(BaseCommand):
    help = "Encrypt all stored secrets with the first key of SVC_SECRET_KEYS, while the service runs."

    def handle(self, *_: Any, **__: Any) -> None:
        unreadable = 0
        for outcome in reencryption.reencrypt_all():
            if outcome.count:
                self.stdout.write(f"{outcome.name}: {outcome.reencrypted} of {outcome.count} re-encrypted.")
            if outcome.unreadable:
                self.stderr.write(f"{outcome.name}: cannot be decrypted with any key: {', '.join(outcome.unreadable)}.")
            unreadable += len(outcome.unreadable)
        if unreadable:
            raise CommandError(
                f"{unreadable} secrets could not be decrypted. Add their key to SVC_SECRET_KEYS, or enter them again."
            )
        self.stdout.write("All stored secrets are encrypted with the first key of SVC_SECRET_KEYS.")
