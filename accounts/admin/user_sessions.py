"""The sessions of a user on the user's admin page, with buttons that end one or all of them."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import path

from accounts.models import Session
from accounts.models.sessions import stored_session_key
from system.admin_site.site import RecordAdmin
from system.errors import AccessDenied, NotFound


class SessionsOfUser(RecordAdmin):
    """Base of the admin page of users."""

    change_form_outer_after_template = "admin/accounts/user/sessions.html"

    def get_urls(self) -> Any:
        view = self.admin_site.admin_view(self.end_sessions_view)
        return [path("<path:object_id>/sessions/end/", view, name="accounts_user_end_sessions"), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        user = context.get("original")
        if user is not None:
            own_key = stored_session_key(request.session)
            context |= {"sessions": Session.of_user(user), "own_session_key": own_key}
        return super().render_change_form(request, context, *args, **kwargs)

    def end_sessions_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ends the session that the button names, or all."""
        user = self.get_object(request, object_id)
        if not self.has_change_permission(request, user):
            raise AccessDenied
        if user is None:
            raise NotFound
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if key := request.POST.get("session", ""):
            Session.objects.filter(user=user, session_key=key).delete()
            messages.success(request, "Session ended.")
        else:
            user.end_sessions()
            messages.success(request, f"Ended all sessions of {user.login} and deleted the keys from API sign-ins.")
        return redirect("admin:accounts_user_change", user.pk)
