"""Refuses a save that would overwrite a concurrent change of the same record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Max
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html

from system.admin_site.history_page import Entries, RelatedRecords
from system.records.history import name_of
from system.records.record import Record

NAME = "seen_change"
CHANGED = (
    "{} changed this at {}, after you opened the page, so nothing was saved. "
    '<a class="sb-link" href="{}" target="_blank">Open it as it is now</a> and make your change there; '
    "what you typed stands below."
)


class EditConflictMixin:
    """For pages of the administration: each carries the last change that it shows, and is not saved after a later one.

    Where a record has a history its entries count: not every save of a record, such as that somebody signed in, is one.
    """

    model: Any
    change_form_before_template = "admin/seen_change.html"
    # What belongs to a record without being a column of it, and has entries of its own.
    history_parts: ClassVar[tuple[RelatedRecords, ...]] = ()
    # For pages that have a way of their own.
    refuses_later_changes = True

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        if request.method == "GET" and self.refuses_later_changes and "\x00" not in object_id:
            # Before the record is read: a change between the two is refused needlessly, but never missed.
            request.seen_change = self._last_change(object_id)  # type: ignore[attr-defined]
        return super().get_object(request, object_id, from_field)  # type: ignore[misc]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change=change, **options)  # type: ignore[misc]
        seen = request.POST.get(NAME)
        if change and seen and self.refuses_later_changes:
            own_checks = form.clean

            def clean(filled: Any) -> Any:
                self._refuse_later_change(request, filled.instance, seen)
                return own_checks(filled)

            form.clean = clean  # the class is made for this request
        return form

    def render_change_form(self, request: HttpRequest, context: Any, *positional: Any, **named: Any) -> Any:
        context[NAME] = request.POST.get(NAME, "") or getattr(request, NAME, "")
        return super().render_change_form(request, context, *positional, **named)  # type: ignore[misc]

    def _refuse_later_change(self, request: HttpRequest, record: Record, seen: str) -> None:
        """Under the lock of the save that follows."""
        type(record).take_turn()
        type(record)._base_manager.select_for_update().order_by().filter(pk=record.pk).first()
        if self._last_change(record.pk) != seen:
            who, when = self._last_of(record.pk)
            shown = when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
            raise ValidationError(format_html(CHANGED, name_of(who) or "The system", shown, request.get_full_path()))

    def _last_change(self, sys_id: str) -> str:
        if not hasattr(self.model, "history"):
            return str(self.model._base_manager.filter(pk=sys_id).values_list("sys_version", flat=True).first() or 0)
        numbers = [each.order_by().aggregate(last=Max("history_id"))["last"] or 0 for each in self._sources(sys_id)]
        return ".".join(map(str, numbers))

    def _sources(self, sys_id: str) -> list[Any]:
        return [self.model.history.filter(sys_id=sys_id), *(part.entries_of(sys_id) for part in self.history_parts)]

    def _last_of(self, sys_id: str) -> tuple[str | None, datetime]:
        if not hasattr(self.model, "history"):
            record = self.model._base_manager.filter(pk=sys_id).first()
            return (record.sys_updated_by, record.sys_updated_at) if record else (None, timezone.now())
        (entry,) = Entries(self.model.history.filter(sys_id=sys_id), self.history_parts, sys_id)[:1]
        return entry.history_user_id, entry.history_date
