"""The pages of the accounts area: start, sign-in, sign-out, and everybody's own account."""

import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

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
from accounts.http import new_key_handover, sign_in_hooks
from accounts.http.forms import KeyForm, OwnPasswordForm, ProfileForm, SignInForm
from accounts.models import AccessKey, Session, User
from accounts.models.sessions import own_row
from system import properties
from system.errors import NotFound, TooMany
from system.http import start_page

# Where a key that is made here is shown.
PLACE = "account"


class Start(View):
    """`/`: the welcome page or sign-in for a visitor, a plain start page for somebody signed in."""

    def get(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            return render(request, "pages/start.html", {"entries": start_page.entries(request)})
        welcome = str(properties.get(properties.WELCOME_PAGE))
        # This page itself, however spelled, would send the visitor in circles: browsers take dots out of a path.
        leads_elsewhere = posixpath.normpath(unquote(urlsplit(welcome).path)).strip("./") != ""
        return HttpResponseRedirect(welcome if leads_elsewhere else reverse("login"))


def local_path(request: HttpRequest, wanted: str) -> str:
    """Where to go after sign-in: a path of this service or the start page."""
    is_local = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_local else reverse("start")


class SignIn(View):
    """`/login/`: by password; where there is another way, that one first and the form behind `?local=1`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        wanted = request.GET.get("next", "")
        if request.user.is_authenticated:
            return redirect(local_path(request, wanted))
        return self._show(request, SignInForm(), wanted, is_open="local" in request.GET)

    def post(self, request: HttpRequest) -> HttpResponse:
        form, wanted = SignInForm(request.POST), request.POST.get("next", "")
        if not form.is_valid():
            return self._show(request, form, wanted, status=400)
        try:
            user = authenticate(request, username=form.cleaned_data["login"], password=form.cleaned_data["password"])
        except TooMany as error:
            form.add_error(None, error.message)
            response = self._show(request, form, wanted, status=429)
            response["Retry-After"] = str(error.retry_after_s)
            return response
        if user is None:
            form.add_error(None, "Login or password is wrong, or the account is not active.")
            return self._show(request, form, wanted, status=401)
        login(request, user)
        return redirect(local_path(request, wanted))

    def _show(
        self, request: HttpRequest, form: SignInForm, wanted: str, status: int = 200, *, is_open: bool = True
    ) -> HttpResponse:
        if form.data.get("login"):  # who typed a login goes on with the password
            form.fields["login"].widget.attrs.pop("autofocus")
            form.fields["password"].widget.attrs["autofocus"] = True
        ways = sign_in_hooks.ways(request)
        seen = {
            "form": form if is_open or not ways else None,
            "ways": ways,
            "next": wanted,
            "has_signed_out": "signed_out" in request.GET,
        }
        return render(request, "pages/login.html", seen, status=status)


class SignOut(View):
    """`/logout/`: by POST only; ends at the sign-in page, never at `/`, which could sign in again."""

    def post(self, request: HttpRequest) -> HttpResponse:
        finish = sign_in_hooks.leaving(request)
        logout(request)
        return finish(request) if finish else redirect(reverse("login") + "?signed_out=1")


class OwnAccount(LoginRequiredMixin, View):
    """Base of the account pages: one page, several forms; the one that was sent keeps what was typed."""

    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def show(self, status: int = 200, **forms: Any) -> HttpResponse:
        user = self.user()
        seen = {
            "profile": ProfileForm(instance=user),
            "password": OwnPasswordForm(user) if user.has_usable_password() else None,
            "key_form": KeyForm(user),
            "keys": AccessKey.objects.filter(user=user),
            "sessions": Session.objects.filter(user=user).order_by("-started_at"),
            "own_session": own_row(self.request.session),
            "roles": sorted(user.role_names),
            **forms,
        }
        return render(self.request, "pages/account.html", seen, status=status)

    def done(self, said: str) -> HttpResponse:
        messages.success(self.request, said)
        return redirect("account")

    def refuse(self, said: str, **forms: Any) -> HttpResponse:
        """Said at the top too: the field in question may be out of sight."""
        messages.error(self.request, said)
        return self.show(400, **forms)


class AccountForm(OwnAccount):
    """A form of the page with an address of its own; who opens that address is sent to the page."""

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        return redirect("account")


class Account(OwnAccount):
    """`/account/`: the page, and the profile form."""

    def get(self, request: HttpRequest) -> HttpResponse:
        name, new_key = new_key_handover.take(request.session, PLACE) or (None, None)
        return self.show(new_key=new_key, new_key_name=name)

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ProfileForm(request.POST, instance=User.objects.get(pk=self.user().pk))
        if not form.is_valid():
            return self.refuse("The profile was not saved.", profile=form)
        user = form.save(commit=False)
        # Only what was typed: a change by an administrator meanwhile stays.
        user.save(update_fields=form.changed_data)
        return self.done("Profile saved.")


class ChangePassword(AccountForm):
    """Ends every other session and the keys that sign-ins by API gave out."""

    def post(self, request: HttpRequest) -> HttpResponse:
        user = self.user()
        form = OwnPasswordForm(user, request.POST, address=request.META.get("REMOTE_ADDR", ""))
        if not user.has_usable_password():
            raise NotFound("This account has no password.")
        if not form.is_valid():
            return self.refuse("The password was not changed; see below.", password=form)
        with transaction.atomic():
            form.save(commit=False)
            user.save(update_fields=["password"])
            update_session_auth_hash(request, user)
            user.end_sessions(but=own_row(request.session))
        return self.done("Password changed. Other sessions have ended.")


class MakeKey(AccountForm):
    """Leaves the new key to the page that follows."""

    def post(self, request: HttpRequest) -> HttpResponse:
        user = self.user()
        form = KeyForm(user, request.POST)
        if not form.is_valid():
            return self.refuse("No key was made; see below.", key_form=form)
        secret = access_keys.make(user, form.cleaned_data["name"], expires_at=form.expires_at(), scope=form.scope_ids())
        new_key_handover.leave(request.session, PLACE, form.cleaned_data["name"], secret)
        return redirect("account")


class RevokeKey(AccountForm):
    """Asks first; only what is posted does it."""

    def get(self, request: HttpRequest, sys_id: str = "", **_: Any) -> HttpResponse:
        key = self._key(sys_id)
        return render(request, "pages/revoke_key.html", {"key": key}) if key else super().get(request)

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        key = self._key(sys_id)
        if key is None:
            raise NotFound("There is no such key.")
        key.delete()
        return self.done(f"The key “{key.name}” works no longer.")

    def _key(self, sys_id: str) -> AccessKey | None:
        return AccessKey.objects.filter(user=self.user(), sys_id=sys_id).first()


class EndSession(AccountForm):
    def post(self, request: HttpRequest, session: str) -> HttpResponse:
        Session.objects.filter(user=self.user(), session_key=session).delete()
        return self.done("The session has ended.")
