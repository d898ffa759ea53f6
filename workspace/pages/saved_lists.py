"""Saves the query and columns of a list under a name, and changes, shares and deletes saved lists."""

from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts import roles
from system.errors import Conflict, InvalidInput, NotFound, ServiceError
from tableapi.catalogue.definitions import Table
from tableapi.changes.logged_values import table_key
from tableapi.query.parameters import parse_text
from tableapi.read.context import ReadContext
from workspace.lists import list_contents, saved_lists
from workspace.lists.list_state import ListState, parse_state
from workspace.models import MAX_NAME_LENGTH, SavedList
from workspace.pages.base import WorkspacePage


class SavedListPage(WorkspacePage):
    """`/tables/{table}/saved/` for a new list, `…/saved/{id}/` for an existing one. The URL also contains the current
    query and columns, which a POST saves."""

    def get(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        context, opened = self.open_table(table)
        return self.show(opened, self.find(context, opened, sys_id))

    def post(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        context, opened = self.open_table(table)
        saved = self.find(context, opened, sys_id)
        state = self.state(opened)
        if request.POST.get("step") == "delete" and saved is not None:
            saved.delete()
            return redirect(ListState(table, state.query, columns=state.columns).url())
        if saved is not None and saved.user_id != self.caller.user_id:
            raise NotFound
        try:
            saved = self.save(context, opened, saved)
        except (InvalidInput, Conflict) as error:
            return self.show(opened, saved, error)
        return redirect(ListState(table, saved.query, columns=tuple(saved.columns), saved=saved.pk).url())

    def find(self, context: ReadContext, table: Table, sys_id: str) -> SavedList | None:
        """The list, if it is the caller's, or shared and the caller is an administrator. None for a new one."""
        if not sys_id:
            return None
        saved = SavedList.objects.filter(pk=sys_id, table_key=table_key(table)).first()
        is_own = saved is not None and saved.user_id == self.caller.user_id
        if saved is None or not (is_own or (saved.roles and self.user().has_role(roles.ADMIN))):
            raise NotFound
        return saved

    def state(self, table: Table) -> ListState:
        return parse_state(table.name, self.request.GET).first_page

    def save(self, context: ReadContext, table: Table, saved: SavedList | None) -> SavedList:
        post = self.request.POST
        name = parse_text(post, "name").strip()
        if not 0 < len(name) <= MAX_NAME_LENGTH:
            raise InvalidInput(f"Enter a name of at most {MAX_NAME_LENGTH} characters.", field="name")
        role_ids = saved_lists.check_roles(self.user(), post.getlist("roles"))
        if saved is None:
            saved = SavedList(user=self.user(), table_key=table_key(table))
        saved.name, saved.roles = name, role_ids
        if saved.is_new or "replace" in post:
            state = self.state(table)
            saved.query = state.query
            saved.columns = [column.path for column in list_contents.columns_of(context, table, state)]
            if not saved_lists.is_valid(context, table, saved.query, saved.columns):
                raise InvalidInput("The query is invalid.", field="name")
        try:
            with transaction.atomic():
                saved.save()
        except IntegrityError:
            raise Conflict("You already have a list with this name.", field="name") from None
        return saved

    def show(self, table: Table, saved: SavedList | None, error: ServiceError | None = None) -> HttpResponse:
        is_own = saved is None or saved.user_id == self.caller.user_id
        post, state = self.request.POST, self.state(table)
        chosen = post.getlist("roles") if error else saved.roles if saved else []
        values: dict[str, Any] = {
            "table": table,
            "state": state,
            "saved": saved,
            "is_own": is_own,
            "name": post.get("name", "") if error else saved.name if saved else "",
            "roles": saved_lists.shareable_roles(self.user()) if is_own else {},
            "chosen_roles": chosen,
            "has_changes": saved is not None and (state.query, list(state.columns)) != (saved.query, saved.columns),
            "error": error,
        }
        return render(self.request, "workspace/saved_list.html", values, status=error.status if error else 200)
