"""Admin pages of users, groups and companies."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as DjangoGroup
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from unfold.admin import TabularInline
from unfold.forms import AdminPasswordChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.roles import LastAdminGuard
from accounts.models import Company, Group, Session, User, UserGroup, UserRole, time_zones
from accounts.models.sessions import stored_session_key
from system.admin_site.history_page import RelatedRecords
from system.admin_site.name_lists import summarize_names
from system.admin_site.site import HistoryAdmin, RecordAdmin
from system.errors import AccessDenied, NotFound
from system.registry import Registry

admin.site.unregister(DjangoGroup)  # replaced by our own groups

# How many other accounts a warning names.
MAX_NAMES = 3
SHARED_EMAIL_WARNING = (
    "Other accounts have the same email: {logins}. If a connection matches users by email, nobody can use it to "
    "sign in to any of these accounts (user_ambiguous)."
)
# Django deletes a user's log entries with the user.
LOG_ENTRIES_LABEL = (
    "log entries of the user's changes to companies, access keys and periodic tasks, and uses of Who sees what"
)
REMAINING_HISTORY_NOTE = "The history of the user's changes is kept. It shows the user's ID instead of the login."
# Warnings for the page that deletes users, registered by each app.
DELETION_WARNINGS: Registry[Callable[[Iterable[User]], Iterable[str]]] = Registry()
NO_PASSWORD_HELP = "Without a password, the user can sign in only through an identity provider."


def _remove_log_entries(to_delete: list[Any]) -> list[Any]:
    """Leave out log entries, which can be numerous and say nothing about the user."""
    prefix = f"{capfirst(LogEntry._meta.verbose_name)}: "
    remaining_items = [_remove_log_entries(item) if isinstance(item, list) else item for item in to_delete]
    return [item for item in remaining_items if item and not (isinstance(item, str) and item.startswith(prefix))]


class AssociationFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """Refuses duplicates: Django's own check leaves out the parent and hidden fields."""

    duplicate_conditions: ClassVar[dict[str, str]] = {}

    def clean(self) -> None:
        super().clean()
        column = next(iter(self.form.base_fields))
        removed_forms = self.deleted_forms
        values = [form.cleaned_data.get(column) for form in self.extra_forms if form not in removed_forms]
        new_values = [value for value in values if value]
        is_duplicate = len(new_values) != len(set(new_values))
        if not is_duplicate and new_values and not self.instance.is_new:
            filters = {self.fk.name: self.instance, f"{column}__in": new_values, **self.duplicate_conditions}
            existing_rows = self.get_queryset().model._default_manager.filter(**filters)
            is_duplicate = existing_rows.exclude(
                pk__in=[form.instance.pk for form in removed_forms if not form.instance.is_new]
            ).exists()
        if is_duplicate:
            raise forms.ValidationError(f"The same {column} was added more than once.")


class GrantFormSet(AssociationFormSet):
    duplicate_conditions = {"source": UserRole.MANUAL}


class AssociationInline(TabularInline):  # type: ignore[misc]  # the theme has no types
    """Rows can be added and removed but not changed, because swapping two would violate the unique constraint."""

    extra = 0
    formset = AssociationFormSet

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class GrantInline(AssociationInline):
    model = UserRole
    formset = GrantFormSet
    fields = ("role", "source", "sys_created_at", "granted_by")
    readonly_fields = ("source", "sys_created_at", "granted_by")
    verbose_name, verbose_name_plural = "role", "roles"

    @admin.display(description="granted by")
    def granted_by(self, grant: UserRole) -> str:
        """Shows the id of a deleted user."""
        creator_id = grant.sys_created_by
        return str(User.objects.filter(pk=creator_id).first() or creator_id) if creator_id else "the system"


class MembershipInline(AssociationInline):
    model = UserGroup
    fields = ("group",)
    verbose_name, verbose_name_plural = "group", "groups"


class NewUserForm(UserCreationForm):  # type: ignore[misc]
    class Meta:
        model = User
        fields = ("login",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["usable_password"].help_text = NO_PASSWORD_HELP


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[misc]
    def save(self, commit: bool = True) -> User:
        """Ends the user's sessions, because somebody else may have known the old password."""
        with transaction.atomic():
            user: User = super().save(commit=False)
            user.save(update_fields=["password"])  # keeps concurrent changes of other columns
            user.end_sessions()
        return user


class UserForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's form shows parts of the password hash
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "time_zone" in self.fields:  # not for users who may only view
            choices = time_zones.choices(self.instance.time_zone)
            self.fields["time_zone"].widget = UnfoldAdminSelectWidget(choices=choices)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, LastAdminGuard):  # type: ignore[type-arg, misc]  # takes `change` by name only
    history_parts = (
        RelatedRecords(UserRole, "user", "Role", "role"),
        RelatedRecords(UserGroup, "user", "Group", "group"),
    )
    form = UserForm
    add_form = NewUserForm
    change_password_form = PasswordForm
    change_form_outer_after_template = "admin/accounts/user/sessions.html"
    list_display = ("login", "first_name", "last_name", "email", "active", "last_login")
    list_filter = ("active",)
    search_fields = ("login", "email", "first_name", "last_name")
    ordering = ("login",)
    filter_horizontal = ()
    autocomplete_fields = ("company",)
    readonly_fields = ("last_login", "password_state")
    inlines = (GrantInline, MembershipInline)
    fieldsets = (
        (None, {"fields": ("login", "password_state", "active")}),
        ("Profile", {"fields": ("first_name", "last_name", "email", "phone", "company", "time_zone", "last_login")}),
    )
    add_fieldsets = ((None, {"fields": ("login", "usable_password", "password1", "password2")}),)

    def get_urls(self) -> Any:
        view = self.admin_site.admin_view(self.end_sessions_view)
        return [path("<path:object_id>/sessions/end/", view, name="accounts_user_end_sessions"), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        user = context.get("original")
        if user is not None:
            context |= {"sessions": Session.of_user(user), "own_session_key": stored_session_key(request.session)}
            if request.method == "GET":
                self._warn_of_shared_email(request, user)
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if others := [str(other) for other in User.objects.similar_to(obj)[: MAX_NAMES + 1]]:
            names = summarize_names(others, MAX_NAMES)
            messages.warning(request, f"{obj} may be a duplicate of {names}.")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, model_count, perms_needed, protected = super().get_deleted_objects(objs, request)
        if entries := model_count.pop(str(LogEntry._meta.verbose_name_plural), 0):
            model_count[LOG_ENTRIES_LABEL] = entries
        consequences = [REMAINING_HISTORY_NOTE] if objs else []
        if "post" not in request.POST:  # the confirmation page, not the deletion itself
            for sentence in (sentence for warning in DELETION_WARNINGS for sentence in warning(objs)):
                messages.warning(request, sentence)
        return [*_remove_log_entries(to_delete), *consequences], model_count, perms_needed, protected

    def response_change(self, request: HttpRequest, obj: User) -> Any:
        if "_continue" not in request.POST:  # otherwise the next form shows the warning
            self._warn_of_shared_email(request, obj)
        return super().response_change(request, obj)

    def _warn_of_shared_email(self, request: HttpRequest, user: User) -> None:
        others = User.objects.with_email(user.email).exclude(pk=user.pk).order_by("login")
        if logins := [other.login for other in others[: MAX_NAMES + 1]]:
            messages.warning(request, SHARED_EMAIL_WARNING.format(logins=summarize_names(logins, MAX_NAMES)))

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

    @admin.display(description="Password")
    def password_state(self, obj: User) -> str:
        url = reverse("admin:auth_user_password_change", args=[obj.pk])
        state, next_step = ("set", "change it") if obj.has_usable_password() else ("not set", "set one")
        return format_html('{} · <a class="sb-link" href="{}">{}</a>', state, url, next_step)


@admin.register(Group)
class GroupAdmin(HistoryAdmin):
    empty_list_text = "People who work together. Records and access rules can refer to a group."
    list_display = ("name", "active")
    list_filter = ["active", "grantable_by_sign_in"]
    search_fields = ("name",)
    fields = ("name", "active", "grantable_by_sign_in")
    history_parts = (RelatedRecords(UserGroup, "group", "Member", "user"),)

    class MemberInline(AssociationInline):
        model = UserGroup
        fields = ("user",)
        autocomplete_fields = ("user",)
        verbose_name, verbose_name_plural = "member", "members"

    inlines = (MemberInline,)


@admin.register(Company)
class CompanyAdmin(RecordAdmin):
    empty_list_text = "Organizations that people and records belong to."
    list_display = fields = ("name", "active")
    list_filter = ["active"]
    search_fields = ("name",)
