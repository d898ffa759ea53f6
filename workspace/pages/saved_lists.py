"""Saves the query and columns of a list under a name, and changes, shares and deletes saved lists."""

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts import roles
from system.errors import Conflict, InvalidInput, NotFound, ServiceError
from tableapi.changes.logged_values import table_key
from tableapi.query.parameters import parse_text
from workspace.lists import list_contents, saved_lists
from workspace.lists.list_state import ListState, parse_state
from workspace.models import MAX_NAME_LENGTH, SavedList
from workspace.pages.base import TablePage


class SavedListPage(TablePage):
    """`/tables/{table}/saved/` for a new list, `…/saved/{id}/` for an existing one. The URL also contains the current
    query and columns, which a POST saves."""

    state: ListState

    def get(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        self.state = parse_state(table, request.GET).first_page()
        return self.show(self.find(sys_id))

    def post(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        self.state, saved = parse_state(table, request.GET).first_page(), self.find(sys_id)
        if request.POST.get("step") == "delete" and saved is not None:
            saved.delete()
            return redirect(self.state.first_page(saved="").url)
        if saved is not None and saved.user_id != self.caller.user_id:
            raise NotFound
        try:
            saved = self.save(saved)
        except (InvalidInput, Conflict) as error:
            return self.show(saved, error)
        return redirect(saved_lists.state_of(self.table, saved).url)

    def find(self, sys_id: str) -> SavedList | None:
        """The list, if it is the caller's, or shared and the caller is an administrator. None for a new one."""
        if not sys_id:
            return None
        saved = SavedList.objects.filter(pk=sys_id, table_key=table_key(self.table)).first()
        is_own = saved is not None and saved.user_id == self.caller.user_id
        if saved is None or not (is_own or (saved.roles and self.user().has_role(roles.ADMIN))):
            raise NotFound
        return saved

    def save(self, saved: SavedList | None) -> SavedList:
        post, context = self.request.POST, self.read_context
        name = parse_text(post, "name").strip()
        if not 0 < len(name) <= MAX_NAME_LENGTH:
            raise InvalidInput(f"Enter a name of at most {MAX_NAME_LENGTH} characters.", field="name")
        role_ids = list(dict.fromkeys(post.getlist("roles")))
        if not saved_lists.shareable_roles(self.user()).keys() >= set(role_ids):
            raise InvalidInput("You can share a list only with roles that you have.", field="roles")
        if saved is None:
            saved = SavedList(user=self.user(), table_key=table_key(self.table))
        saved.name, saved.roles = name, role_ids
        if saved.is_new or "replace" in post:
            saved.query = self.state.query
            saved.columns = [column.path for column in list_contents.columns_of(context, self.table, self.state)]
            if not saved_lists.is_valid(context, self.table, saved):
                raise InvalidInput("The query is invalid.", field="name")
        try:
            with transaction.atomic():
                saved.save()
        except IntegrityError:
            raise Conflict("You already have a list with this name.", field="name") from None
        return saved

    def show(self, saved: SavedList | None, error: ServiceError | None = None) -> HttpResponse:
        is_own = saved is None or saved.user_id == self.caller.user_id
        current = (self.state.query, self.state.columns)
        values = {
            "table": self.table,
            "state": self.state,
            "saved": saved,
            "is_own": is_own,
            "name": self.request.POST.get("name", saved.name if saved else ""),
            "roles": saved_lists.shareable_roles(self.user()) if is_own else {},
            "chosen_roles": self.request.POST.getlist("roles") if error else saved.roles if saved else [],
            "has_changes": saved is not None and current != (saved.query, saved.columns),
        }
        return self.render("saved_list", values, error)
