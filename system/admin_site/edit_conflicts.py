"""Refuses a save that would overwrite a concurrent change to the same record."""

from datetime import datetime
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Max
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html

from system.admin_site.history_page import HistoryEntries, RelatedRecords
from system.records.history import login_of
from system.records.record import Record
from system.templatetags.moments import MINUTE_FORMAT

SEEN_CHANGE_FIELD = "seen_change"
MESSAGE = (
    "{} changed this record at {}, after you opened the page. Nothing was saved. "
    '<a class="sb-link" href="{}" target="_blank">Open the current version</a> and make your change there. '
    "Your input is below."
)


class EditConflictMixin:
    """Refuses to save a form if the record has changed since the form was opened.

    For a record with a history, only new entries count as changes, because sign-ins also save the record.
    """

    model: Any
    change_form_before_template = "admin/seen_change.html"
    # Related records that this page shows as parts of the record, with a history of their own.
    history_parts: ClassVar[tuple[RelatedRecords, ...]] = ()
    # False for pages with their own check.
    checks_edit_conflicts = True

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        if request.method == "GET" and self.checks_edit_conflicts and "\x00" not in object_id:
            # Read before the record, so that a change in between causes an unneeded refusal instead of being missed.
            request.seen_change = self._version_marker(object_id)  # type: ignore[attr-defined]
        return super().get_object(request, object_id, from_field)  # type: ignore[misc]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change=change, **options)  # type: ignore[misc]
        seen_change = request.POST.get(SEEN_CHANGE_FIELD)
        if change and seen_change and self.checks_edit_conflicts:
            original_clean = form.clean

            def clean(bound_form: Any) -> Any:
                self._refuse_if_changed(request, bound_form.instance, seen_change)
                return original_clean(bound_form)

            form.clean = clean  # the class is created for this request
        return form

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        context[SEEN_CHANGE_FIELD] = request.POST.get(SEEN_CHANGE_FIELD, "") or getattr(request, SEEN_CHANGE_FIELD, "")
        return super().render_change_form(request, context, *args, **kwargs)  # type: ignore[misc]

    def _refuse_if_changed(self, request: HttpRequest, record: Record, seen_change: str) -> None:
        """Take the locks of the save that follows, then compare versions."""
        type(record).lock_for_change()
        type(record)._base_manager.select_for_update().order_by().filter(pk=record.pk).first()
        if self._version_marker(record.pk) != seen_change:
            editor, changed_at = self._last_editor(record.pk)
            time = MINUTE_FORMAT.format(timezone.localtime(changed_at))
            raise ValidationError(format_html(MESSAGE, login_of(editor) or "The system", time, request.get_full_path()))

    def _version_marker(self, sys_id: str) -> str:
        if not hasattr(self.model, "history"):
            return str(self.model._base_manager.filter(pk=sys_id).values_list("sys_version", flat=True).first() or 0)
        sources = [self.model.history.filter(sys_id=sys_id), *(part.entries_of(sys_id) for part in self.history_parts)]
        return ".".join(str(entries.order_by().aggregate(last=Max("history_id"))["last"] or 0) for entries in sources)

    def _last_editor(self, sys_id: str) -> tuple[str | None, datetime]:
        if not hasattr(self.model, "history"):
            record = self.model._base_manager.filter(pk=sys_id).first()
            return (record.sys_updated_by, record.sys_updated_at) if record else (None, timezone.now())
        (entry,) = HistoryEntries(self.model.history.filter(sys_id=sys_id), self.history_parts, sys_id)[:1]
        return entry.history_user_id, entry.history_date
