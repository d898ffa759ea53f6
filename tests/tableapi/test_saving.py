"""Records of the catalogue are saved only by the functions that also change the database."""

import ast
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from system.records import savers
from system.records.savers import RecordSaver
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn
from tableapi.models.catalogue_version import CatalogueRecord
from tests.tableapi.designs import column_types_of, make_column, make_table
from tests.tableapi.world import api, errors_of

pytestmark = pytest.mark.django_db
CATALOGUE_MODELS = (Table, Column, Choice, View, ViewColumn, Rule, SetRule)
PRODUCT_ROOT = Path(saving.__file__).parents[2]


@pytest.fixture
def device() -> Table:
    return make_table("device")


def test_every_catalogue_model_has_a_save_function():
    assert set(CatalogueRecord.__subclasses__()) == set(CATALOGUE_MODELS)
    assert all(type(savers.saver_of(model)) is not RecordSaver for model in CATALOGUE_MODELS)


@pytest.mark.parametrize("model", CATALOGUE_MODELS)
def test_plain_save_is_refused(model: type[Any]):
    count_before = model.objects.count()
    for save in (model().save, lambda: model.objects.create(), lambda: model.objects.get_or_create(pk="new")):
        with pytest.raises(RuntimeError, match="Use its function in"):
            save()
    assert model.objects.count() == count_before


def test_plain_save_of_a_stored_column_changes_nothing(device: Table):
    column = make_column(device, "colour", "text")
    column.type = "wysiwyg"
    types_before = column_types_of("device")
    with pytest.raises(RuntimeError):
        column.save()
    with pytest.raises(RuntimeError):
        Column.objects.update_or_create(pk=column.pk, defaults={"type": "wysiwyg"})
    assert column.refreshed().type == "text" and column_types_of("device") == types_before


def test_rows_are_never_saved_without_validation():
    """No other module of the product calls `save_row`."""
    calling_modules = {
        str(path.relative_to(PRODUCT_ROOT))
        for app in ("accounts", "agents", "collections_app", "config", "sso", "system", "tableapi", "workspace")
        for path in (PRODUCT_ROOT / app).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "save_row"
    }
    assert calling_modules == {"tableapi/design/saving.py"}


class TestInvalidStoredPath:
    """A second view column with an invalid stored path is refused as invalid, not also as a duplicate."""

    @pytest.fixture
    def view(self, device: Table) -> View:
        column = make_column(device, "colour")
        view = View(table=device, name="short")
        saving.save_view(view)
        saving.save_view_column(ViewColumn(view=view, path="colour", position=1))
        column.delete()
        return view

    def test_table_api_reports_only_an_invalid_path(self, view: View, alice: User):
        response = api(alice).post("sys_ui_view_column", {"view": view.pk, "path": "colour", "position": 2})
        assert errors_of(response) == [(422, "invalid_value", "path")]
