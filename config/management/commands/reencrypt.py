"""`manage.py reencrypt`: brings stored secrets under the newest key, so that an old one can be taken away."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.maintenance import reencryption


class Command(BaseCommand):
    help = "Encrypt every stored secret anew with the first key of SVC_SECRET_KEYS, while the service runs."

    def handle(self, *_: Any, **__: Any) -> None:
        lost = 0
        for outcome in reencryption.everything():
            if outcome.found:
                self.stdout.write(f"{outcome.name}: {outcome.renewed} of {outcome.found} encrypted anew.")
            if outcome.unreadable:
                self.stderr.write(f"{outcome.name}: no key reads {', '.join(outcome.unreadable)}.")
            lost += len(outcome.unreadable)
        if lost:
            raise CommandError(f"{lost} secrets were left: add the key that they need, or set them anew.")
        self.stdout.write("Every stored secret is encrypted with the first key of SVC_SECRET_KEYS.")
