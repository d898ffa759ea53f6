"""`manage.py reencrypt`: encrypts stored secrets with the newest key, so that old keys can be removed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.maintenance import reencryption


class Command(BaseCommand):
    help = "Encrypt all stored secrets with the first key of SVC_SECRET_KEYS, while the service runs."

    def handle(self, *_: Any, **__: Any) -> None:
        failure_count = 0
        for result in reencryption.reencrypt_all():
            if result.secret_count:
                self.stdout.write(f"{result.name}: {result.reencrypted_count} of {result.secret_count} re-encrypted.")
            if result.failed_keys:
                self.stderr.write(f"{result.name}: no key can decrypt these rows: {', '.join(result.failed_keys)}.")
            failure_count += len(result.failed_keys)
        if failure_count:
            raise CommandError(
                f"Undecryptable secrets: {failure_count}. Add their keys to SVC_SECRET_KEYS or enter the secrets again."
            )
        self.stdout.write("All stored secrets are encrypted with the first key of SVC_SECRET_KEYS.")
