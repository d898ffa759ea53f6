"""Admin pages of users, groups and companies."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as DjangoGroup
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from unfold.admin import TabularInline
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserCreationForm

from accounts.admin.last_admin_guard import KeepingAnAdmin
from accounts.models import Company, Group, User, UserGroup, UserRole
from system.admin_site.history_page import RelatedRecords
from system.admin_site.name_lists import first_of
from system.admin_site.site import RecordAdmin, TrackedAdmin

admin.site.unregister(DjangoGroup)  # roles and groups of our own take its place


# Others with the same email, by name.
MOST_NAMED = 3
SHARED_EMAIL = (
    "This is not the only account with this email: whoever signs in through an identity provider and is found by email "
    "is let into none of them (user_ambiguous)."
)


# Django's own entries of what somebody did on these pages go with them; only records without a history show them.
NOTES = "notes of what they changed, shown by companies, access keys and periodic tasks"
KEPT = "Not deleted: the histories of what they changed, which name them by their id from then on"
# What follows when users are deleted; each area says what of its own does.
TellConsequences = Callable[[Iterable[User]], Iterable[str]]
CONSEQUENCES: list[TellConsequences] = []


def told_before_deletion(tell: TellConsequences) -> TellConsequences:
    """Add what the page that deletes users warns of."""
    CONSEQUENCES.append(tell)
    return tell


SIGN_IN_ONLY = "Without a password they come in through an identity provider, where one is connected."


def _without_notes(deleted: list[Any]) -> list[Any]:
    """One by one they are many, and say nothing about who is deleted."""
    is_note = f"{capfirst(LogEntry._meta.verbose_name)}: "
    nested = [_without_notes(each) if isinstance(each, list) else each for each in deleted]
    return [each for each in nested if each and not (isinstance(each, str) and each.startswith(is_note))]


class LinkFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """Says what would stand twice: Django leaves the parent, and what is no field, out of its own check."""

    column: ClassVar[str]
    given_here: ClassVar[dict[str, str]] = {}

    def clean(self) -> None:
        super().clean()
        leaving = self.deleted_forms
        new = [form.cleaned_data.get(self.column) for form in self.extra_forms if form not in leaving]
        given = [linked for linked in new if linked]
        is_twice = len(given) != len(set(given))
        if not is_twice and given and not self.instance.is_new:
            same = {self.fk.name: self.instance, f"{self.column}__in": given, **self.given_here}
            stays = self.get_queryset().model._default_manager.filter(**same)
            is_twice = stays.exclude(pk__in=[form.instance.pk for form in leaving if not form.instance.is_new]).exists()
        if is_twice:
            raise forms.ValidationError(f"The same {self.column} stands twice.")


class GrantFormSet(LinkFormSet):
    column = "role"
    given_here: ClassVar[dict[str, str]] = {"source": UserRole.MANUAL}


class GroupFormSet(LinkFormSet):
    column = "group"


class MemberFormSet(LinkFormSet):
    column = "user"


class Links(TabularInline):  # type: ignore[misc]  # the theme has no types
    """What links two records is given and taken away, never changed: two that change places would collide."""

    extra = 0

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Grants(Links):
    model = UserRole
    formset = GrantFormSet
    fields = ("role", "source", "sys_created_at", "given_by")
    readonly_fields = ("source", "sys_created_at", "given_by")
    verbose_name, verbose_name_plural = "role", "roles"

    @admin.display(description="given by")
    def given_by(self, grant: UserRole) -> str:
        """An id of somebody who is gone stays what it is."""
        by = grant.sys_created_by
        return str(User.objects.filter(pk=by).first() or by) if by else "the system"


class Memberships(Links):
    model = UserGroup
    formset = GroupFormSet
    fields = ("group",)
    verbose_name, verbose_name_plural = "group", "groups"


class NewUserForm(UserCreationForm):  # type: ignore[misc]
    class Meta:
        model = User
        fields = ("login",)

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        self.fields["usable_password"].help_text = SIGN_IN_ONLY


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[misc]
    def save(self, commit: bool = True) -> User:
        """Somebody else's hand may have known the old one: what it opened ends."""
        with transaction.atomic():
            user: User = super().save(commit=False)
            user.save(update_fields=["password"])  # what somebody else changed meanwhile stays
            user.end_sessions()
        return user


@admin.register(User)
class UserAdmin(DjangoUserAdmin, KeepingAnAdmin):  # type: ignore[type-arg, misc]  # takes `change` by name only
    history_parts = (
        RelatedRecords(UserRole, "user", "Role", "role"),
        RelatedRecords(UserGroup, "user", "Group", "group"),
    )
    form = forms.ModelForm  # Django's own shows parts of the password's hash
    add_form = NewUserForm
    change_password_form = PasswordForm
    list_display = ("login", "first_name", "last_name", "email", "active", "last_login")
    list_filter = ("active",)
    search_fields = ("login", "email", "first_name", "last_name")
    ordering = ("login",)
    filter_horizontal = ()
    autocomplete_fields = ("company",)
    readonly_fields = ("last_login", "password_state")
    inlines = (Grants, Memberships)
    actions_submit_line = ("save_and_end_sessions",)
    fieldsets = (
        (None, {"fields": ("login", "password_state", "active")}),
        ("Profile", {"fields": ("first_name", "last_name", "email", "phone", "company", "last_login")}),
    )
    add_fieldsets = ((None, {"fields": ("login", "usable_password", "password1", "password2")}),)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return RecordAdmin.get_fieldsets(self, request, obj) if obj else self.add_fieldsets

    def render_change_form(self, request: HttpRequest, context: Any, *positional: Any, **named: Any) -> Any:
        if request.method == "GET" and context.get("original") is not None:
            self._warn(request, context["original"])
        return super().render_change_form(request, context, *positional, **named)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if others := [str(other) for other in User.objects.taken_for(obj)[: MOST_NAMED + 1]]:
            names = first_of(others, MOST_NAMED)
            messages.warning(request, f"Is this somebody who is here already? Like {obj} is called: {names}.")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, count, needed, protected = super().get_deleted_objects(objs, request)
        if notes := count.pop(str(LogEntry._meta.verbose_name_plural), 0):
            count[NOTES] = notes
        kept = [KEPT] if objs else []
        if "post" not in request.POST:  # else it is done, and was said before
            for sentence in (sentence for tell in CONSEQUENCES for sentence in tell(objs)):
                messages.warning(request, sentence)
        return [*_without_notes(deleted), *kept], count, needed, protected

    def response_change(self, request: HttpRequest, obj: User) -> Any:
        if "_continue" not in request.POST:  # else the form that follows says it
            self._warn(request, obj)
        return super().response_change(request, obj)

    def _warn(self, request: HttpRequest, user: User) -> None:
        others = User.objects.with_email(user.email).exclude(pk=user.pk).order_by("login")
        if logins := [other.login for other in others[: MOST_NAMED + 1]]:
            messages.warning(request, f"{SHARED_EMAIL} Also: {first_of(logins, MOST_NAMED)}.")

    @admin.display(description="Password")
    def password_state(self, obj: User) -> str:
        address = reverse("admin:auth_user_password_change", args=[obj.pk])
        state, next_step = ("set", "change it") if obj.has_usable_password() else ("not set", "set one")
        return format_html('{} · <a class="sb-link" href="{}">{}</a>', state, address, next_step)

    @action(description="Save and end sessions")  # type: ignore[untyped-decorator]
    def save_and_end_sessions(self, request: HttpRequest, obj: User) -> None:
        obj.end_sessions()
        messages.success(request, f"All sessions of {obj.login} and the keys of their sign-ins have ended.")


@admin.register(Group)
class GroupAdmin(TrackedAdmin):
    holds = "People who work together. Records and access rules can name a group."
    list_display = ("name", "active")
    list_filter: ClassVar[list[Any]] = ["active"]
    search_fields = ("name",)
    fields = ("name", "active")
    history_parts = (RelatedRecords(UserGroup, "group", "Member", "user"),)

    class Members(Links):
        model = UserGroup
        formset = MemberFormSet
        fields = ("user",)
        autocomplete_fields = ("user",)
        verbose_name, verbose_name_plural = "member", "members"

    inlines = (Members,)


@admin.register(Company)
class CompanyAdmin(RecordAdmin):
    holds = "Organisations that people and records belong to."
    list_display = ("name", "active")
    list_filter: ClassVar[list[Any]] = ["active"]
    search_fields = ("name",)
    fields = ("name", "active")
