"""`manage.py collections import` and `export`: folders become collections, and the other way; `model-changed`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from collections_app import access, embed
from collections_app.management import model_changes
from collections_app.models import Collection, Document
from collections_app.transfer import folder_format, folder_transfer
from collections_app.transfer.folder_transfer import Outcome
from system.errors import ServiceError
from system.monitoring import health
from system.records import acting_user

BAR = 24
NO_WORKER = "No worker answers: it loads them when it runs. With --now this command does it itself."


class Command(BaseCommand):
    help = "Load a folder of files into a collection, or write one into a folder; go on with a model that was changed."

    def add_arguments(self, parser: CommandParser) -> None:
        words = parser.add_subparsers(dest="word", required=True)
        bring = words.add_parser("import", help="load the files of a folder and of those in it")
        bring.add_argument("folder", type=Path)
        bring.add_argument("--collection", required=True, help="its name; it is made if it is missing")
        bring.add_argument("--user", default="", help="whose rights count; without it, the system's")
        bring.add_argument(
            "--metadata", default="{}", help="a JSON object for every file; NAME.metadata.json adds to it"
        )
        bring.add_argument("--now", action="store_true", help="load here, without a worker")
        take = words.add_parser("export", help="write the files as they were sent, with their metadata")
        take.add_argument("collection")
        take.add_argument("folder", type=Path)
        words.add_parser("model-changed", help="embed all anew whose model gives other vectors than before")

    def handle(self, *_: Any, word: str, **options: Any) -> None:
        does = {"import": self.bring, "export": self.take, "model-changed": self.embed_anew}[word]
        try:
            does(**options)
        except (folder_format.UnfitFolder, ServiceError) as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename or 'The folder'}: {error.strerror}") from None

    def bring(self, *, folder: Path, collection: str, user: str, metadata: str, now: bool, **_: Any) -> None:
        given = folder_format.metadata_object(metadata, "--metadata")
        found = list(folder_format.files(folder, given))
        caller = self.caller(user)
        user_id = caller.pk if caller else ""
        with acting_user.acting_as(user_id or None):
            into = access.open_or_make(caller, collection) if caller else self.own_collection(collection)
            counted: Counter[Outcome] = Counter()
            for file in self.with_progress(found):
                brought = folder_transfer.import_file(into, file, user_id=user_id, is_now=now)
                counted[brought.outcome] += 1
                self.say(f"{brought.outcome}: {file.path.relative_to(folder)} {brought.about}".strip(), brought.outcome)
        self.stdout.write(
            ", ".join(f"{count} {outcome}" for outcome, count in counted.items()) or "The folder is empty."
        )
        if counted[Outcome.QUEUED] and health.heartbeat_states().get("worker") != "ok":
            self.stdout.write(NO_WORKER)
        if counted[Outcome.REFUSED] or counted[Outcome.FAILED]:
            raise CommandError("Not every file was loaded; see above.")

    def take(self, *, folder: Path, collection: str, **_: Any) -> None:
        found = Collection.objects.filter(name=collection, deleted_at__isnull=True).first()
        if found is None:
            raise CommandError(f"There is no collection {collection!r}.")
        target = folder_format.Target(folder)
        total = Document.objects.filter(collection=found, deleted_at__isnull=True, newest__isnull=False).count()
        written = 0
        for document in self.with_progress(folder_transfer.documents(found), total):
            self.say(folder_transfer.take_out(document, target))
            written += 1
        self.stdout.write(f"{written} documents are written to {folder}.")

    def embed_anew(self, **_: Any) -> None:
        found = model_changes.embed_anew()
        if not found:
            raise CommandError("No collection's model gives other vectors than before: nothing is to be done.")
        self.stdout.write(f"The worker embeds {len(found)} anew, each is found by words until it is done:")
        self.stdout.write(", ".join(each.name for each in found))

    def caller(self, login: str) -> User | None:
        if not login:
            return None
        user = User.objects.spelled(login)
        if user is None or not user.active:
            raise CommandError(f"There is no active user with the login {login!r}.")
        return user

    def own_collection(self, name: str) -> Collection:
        """Whoever runs this command may do everything; no access rule counts."""
        name = access.checked_name(name)
        found = Collection.objects.filter(name=name, deleted_at__isnull=True).first()
        if found is None:
            access.check_new_name(name)
            found = Collection(name=name, space=embed.default_space())
            found.save()
        return found

    def with_progress(self, found: Any, total: int | None = None) -> Iterator[Any]:
        total = len(found) if total is None else total
        for number, each in enumerate(found, 1):
            yield each
            if self.is_terminal():
                full = BAR * number // max(total, 1)
                self.stdout.write(f"\r[{'#' * full}{'.' * (BAR - full)}] {number} of {total} ", ending="")
                self.stdout.flush()
        if self.is_terminal() and total:
            self.stdout.write("")

    def say(self, line: str, outcome: Outcome | None = None) -> None:
        """A terminal has the bar, and only what went wrong as a line of its own."""
        is_wrong = outcome in (Outcome.REFUSED, Outcome.FAILED)
        if not self.is_terminal():
            self.stdout.write(line)
        elif is_wrong:
            self.stdout.write(f"\r{line}")

    def is_terminal(self) -> bool:
        return self.stdout.isatty()
