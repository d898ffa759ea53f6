"""The pages of the accounts area: start, sign-in, sign-out, and the user's own account."""

import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout, update_session_auth_hash
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View

from accounts.authentication import access_keys
from accounts.http import sign_in_hooks
from accounts.http.forms import KeyForm, NotificationForm, OwnPasswordForm, ProfileForm, SignInForm
from accounts.models import AccessKey, NotificationChoice, Session, User
from accounts.models.sessions import stored_session_key
from accounts.models.users import Theme
from system import properties
from system.errors import InvalidInput, NotFound, TooManyRequests
from system.http import start_page

# The page that shows the keys created by `CreateKeyView`.
ACCOUNT_PAGE = "account"


class StartView(View):
    """`/`: the start page for signed-in users; redirects visitors to the welcome page or to sign-in."""

    def get(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            return render(request, "pages/start.html", {"entries": start_page.entries(request)})
        welcome_url = str(properties.get(properties.WELCOME_PAGE))
        # A welcome page that leads back here would cause a redirect loop. Browsers remove dots from a path.
        leaves_start_page = posixpath.normpath(unquote(urlsplit(welcome_url).path)).strip("./") != ""
        return HttpResponseRedirect(welcome_url if leaves_start_page else reverse("login"))


def safe_redirect_path(next_url: str) -> str:
    """Where to go after sign-in: a path of this service or the start page."""
    is_local = next_url.startswith("/") and url_has_allowed_host_and_scheme(next_url, allowed_hosts=None)
    return next_url if is_local else reverse("start")


class SignInView(View):
    """`/login/`: the password form, only with `?local=1` if there is another way to sign in."""

    def get(self, request: HttpRequest) -> HttpResponse:
        next_url = request.GET.get("next", "")
        if request.user.is_authenticated:
            return redirect(safe_redirect_path(next_url))
        return self._render_form(request, SignInForm(), next_url, shows_form="local" in request.GET)

    def post(self, request: HttpRequest) -> HttpResponse:
        form, next_url = SignInForm(request.POST), request.POST.get("next", "")
        if not form.is_valid():
            return self._render_form(request, form, next_url, status=400)
        try:
            user = authenticate(request, username=form.cleaned_data["login"], password=form.cleaned_data["password"])
        except TooManyRequests as error:
            form.add_error(None, error.message)
            response = self._render_form(request, form, next_url, status=429)
            response["Retry-After"] = str(error.retry_after_s)
            return response
        if user is None:
            form.add_error(None, "Incorrect login or password, or the account is not active.")
            return self._render_form(request, form, next_url, status=401)
        login(request, user)
        return redirect(safe_redirect_path(next_url))

    def _render_form(
        self, request: HttpRequest, form: SignInForm, next_url: str, status: int = 200, *, shows_form: bool = True
    ) -> HttpResponse:
        if form.data.get("login"):  # the login is already typed, so focus the password
            form.fields["login"].widget.attrs.pop("autofocus")
            form.fields["password"].widget.attrs["autofocus"] = True
        options = sign_in_hooks.sign_in_options(request)
        context = {
            "form": form if shows_form or not options else None,
            "options": options,
            "next": next_url,
            "has_signed_out": "signed_out" in request.GET,
        }
        return render(request, "pages/login.html", context, status=status)


class SignOutView(View):
    """`/logout/`: POST only; redirects to the sign-in page, because `/` could sign the user in again."""

    def post(self, request: HttpRequest) -> HttpResponse:
        responder = sign_in_hooks.run_sign_out_hooks(request)
        logout(request)
        return responder(request) if responder else redirect(reverse("login") + "?signed_out=1")


class AccountPageView(LoginRequiredMixin, View):
    """Base of the account pages: one page with several forms; the submitted form keeps its input."""

    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def render_page(self, status: int = 200, **forms: Any) -> HttpResponse:
        user = self.user()
        context = {
            "profile_form": ProfileForm(instance=user),
            "password_form": OwnPasswordForm(user) if user.has_usable_password() else None,
            "key_form": KeyForm(user),
            "notification_form": NotificationForm(NotificationChoice.of(user)),
            "sends_email": bool(settings.EMAIL_HOST),
            "keys": AccessKey.objects.filter(user=user, parent=None).exclude(kind=AccessKey.KIND_DOCS),
            "sessions": Session.of_user(user),
            "own_session_key": stored_session_key(self.request.session),
            "roles": sorted(user.role_names),
            **forms,
        }
        return render(self.request, "pages/account.html", context, status=status)

    def redirect_with_message(self, message: str) -> HttpResponse:
        messages.success(self.request, message)
        return redirect("account")

    def render_errors(self, message: str, **forms: Any) -> HttpResponse:
        """Shows the message at the top as well, since the field may be out of sight."""
        messages.error(self.request, message)
        return self.render_page(400, **forms)


class AccountFormView(AccountPageView):
    """A form with its own URL; opening that URL redirects to the account page."""

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        return redirect("account")


class AccountView(AccountPageView):
    """`/account/`: shows the account page and saves the profile form."""

    def get(self, request: HttpRequest) -> HttpResponse:
        name, new_key = access_keys.take_new_key(request.session, ACCOUNT_PAGE) or (None, None)
        return self.render_page(new_key=new_key, new_key_name=name)

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ProfileForm(request.POST, instance=User.objects.get(pk=self.user().pk))
        if not form.is_valid():
            return self.render_errors("The profile was not saved.", profile_form=form)
        user = form.save(commit=False)
        # Save changed fields only, so that a concurrent change by an administrator is kept.
        user.save(update_fields=form.changed_data)
        return self.redirect_with_message("Profile saved.")


class ChangePasswordView(AccountFormView):
    """Changes the password; ends every other session and the keys that API sign-ins created."""

    def post(self, request: HttpRequest) -> HttpResponse:
        user = self.user()
        form = OwnPasswordForm(user, request.POST, address=request.META.get("REMOTE_ADDR", ""))
        if not user.has_usable_password():
            raise NotFound("This account has no password.")
        if not form.is_valid():
            return self.render_errors("The password was not changed. See the errors below.", password_form=form)
        with transaction.atomic():
            form.save(commit=False)
            user.save(update_fields=["password"])
            update_session_auth_hash(request, user)
            user.end_sessions(except_key=stored_session_key(request.session))
        return self.redirect_with_message("Password changed. Other sessions have ended.")


class ChooseNotificationsView(AccountFormView):
    def post(self, request: HttpRequest) -> HttpResponse:
        form = NotificationForm(NotificationChoice.of(self.user()), request.POST)
        if not form.is_valid():
            return self.render_errors("The notification settings were not saved.", notification_form=form)
        form.save()
        return self.redirect_with_message("Notification settings saved.")


class ChooseThemeView(AccountFormView):
    """Saves the colours of the pages. Without JavaScript, the start page follows: pages do not repeat their address,
    which can contain a secret."""

    def post(self, request: HttpRequest) -> HttpResponse:
        theme = request.POST.get("theme", "")
        if theme not in Theme.values:
            raise InvalidInput("Choose system, light or dark.", field="theme")
        # Not a change of the record: it would refuse the save of an administrator who has the user's page open.
        User.objects.filter(pk=self.user().pk).update(theme=theme)
        return redirect("start")


class CreateKeyView(AccountFormView):
    def post(self, request: HttpRequest) -> HttpResponse:
        user = self.user()
        form = KeyForm(user, request.POST)
        if not form.is_valid():
            return self.render_errors("The key was not created. See the errors below.", key_form=form)
        name, scope = form.cleaned_data["name"], [role.pk for role in form.cleaned_data.get("scope", [])]
        limits = {name: form.cleaned_data[name] for name in ("read_only", "mcp_writes")}
        secret = access_keys.create_key(user, name, expires_at=form.expires_at(), scope=scope, **limits)
        access_keys.store_new_key(request.session, ACCOUNT_PAGE, name, secret)
        return redirect("account")


class RevokeKeyView(AccountFormView):
    """Asks for confirmation, then revokes the key."""

    def get(self, request: HttpRequest, sys_id: str = "", **_: Any) -> HttpResponse:
        key = self._find_key(sys_id)
        return render(request, "pages/revoke_key.html", {"key": key}) if key else super().get(request)

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        key = self._find_key(sys_id)
        if key is None:
            raise NotFound("The key does not exist.")
        key.delete()
        return self.redirect_with_message(f"The key “{key.name}” was revoked.")

    def _find_key(self, sys_id: str) -> AccessKey | None:
        return AccessKey.objects.filter(user=self.user(), sys_id=sys_id).first()


class EndSessionView(AccountFormView):
    def post(self, request: HttpRequest, session_key: str) -> HttpResponse:
        Session.objects.filter(user=self.user(), session_key=session_key).delete()
        return self.redirect_with_message("Session ended.")


class EndOtherSessionsView(AccountFormView):
    def post(self, request: HttpRequest) -> HttpResponse:
        other_sessions = Session.objects.filter(user=self.user()).exclude(
            session_key=stored_session_key(request.session)
        )
        count, _ = other_sessions.delete()
        return self.redirect_with_message(f"{count} other session{'' if count == 1 else 's'} ended.")
