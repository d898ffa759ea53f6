"""Base classes for the admin pages of tables, columns, rules and views."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.admin import BooleanFieldListFilter
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from system.admin_site.site import HistoryAdmin
from system.records import savers
from tableapi.catalogue.definitions import EXTENSIBLE_TABLES
from tableapi.design import saving
from tableapi.models import Column, Table
from tableapi.models.catalogue_version import CatalogueRecord

TABLE_FILTER = "table__sys_id__exact"


class CatalogueAdmin(HistoryAdmin):
    """Saves records as the Table API does, and shows attributes that cannot be changed read-only."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        if obj is None:
            return names
        fixed_names = [name for name in self.fields if name != "label"] if _is_from_product(obj) else obj.fixed_fields
        return (*names, *(name for name in fixed_names if name in self.fields and name not in names))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        savers.saver_of(type(obj)).save(obj)


def add_errors(form: Any, check: Callable[..., None], *values: Any) -> None:
    """Run the check and add its validation errors to the form."""
    try:
        check(*values)
    except ValidationError as error:
        form.add_error(None, error)


class ProductFilter(BooleanFieldListFilter):
    """Tables of the product, or those that were designed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "Table of the product"


class CatalogueForm(forms.ModelForm):  # type: ignore[type-arg]
    """Also runs the checks against the catalogue."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # not in the stubs
        add_errors(self, saving.check_against_catalogue, self.instance)


class PerTableAdmin(CatalogueAdmin):
    """For records that belong to a table. Adding one from a list filtered by table prefills the table and returns to
    that list."""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        table_id = QueryDict(request.GET.get("_changelist_filters", "")).get(TABLE_FILTER)
        return {"table": table_id, **initial} if table_id else initial

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> Any:
        if obj.table_id is None:
            return super().response_post_save_add(request, obj)
        url = reverse(f"admin:tableapi_{self.opts.model_name}_changelist")
        return redirect(f"{url}?{urlencode({TABLE_FILTER: obj.table_id})}")


class DesignAdmin(CatalogueAdmin):
    """For tables and columns. For those that the product defines, only the label can be changed."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_deletable = obj is None or not _is_from_product(obj)
        return is_deletable and bool(super().has_delete_permission(request, obj))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name in ("parent", "table"):
            extensible = EXTENSIBLE_TABLES if db_field.name == "table" else ()
            options["queryset"] = Table.objects.filter(Q(is_system=False) | Q(name__in=extensible))
        return super().formfield_for_foreignkey(db_field, request, **options)


def _is_from_product(obj: CatalogueRecord) -> bool:
    return obj.is_system if isinstance(obj, Table) else isinstance(obj, Column) and not obj.is_designed


class DesignFormSet(BaseInlineFormSet):  # type: ignore[type-arg]
    """Saves choices and view columns as the Table API does."""

    def save_new(self, form: Any, commit: bool = True) -> Any:
        return self._save(super().save_new(form, commit=False))

    def save_existing(self, form: Any, obj: Any, commit: bool = True) -> Any:
        return self._save(super().save_existing(form, obj, commit=False))

    def _save(self, record: Any) -> Any:
        savers.saver_of(type(record)).save(record)
        return record
