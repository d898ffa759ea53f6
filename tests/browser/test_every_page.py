"""Every page without a finding of axe-core, an error in the console, or sideways scrolling on a phone.

The pages are found by their routes: whatever answers an administrator with a whole page is one. A new route needs
an example in `tests/project/access/world.py`, or a line in `NOT_REACHED` that says why there is none.
"""

import json
from collections.abc import Iterator
from zlib import crc32

import pytest
from playwright.sync_api import Browser

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import DESKTOP_SIZE, PHONE_SIZE, Visitor
from tests.config.stack import Stack, manage
from tests.project.access import world

pytestmark = pytest.mark.browser

CREATE_EXAMPLES = """
import json
from accounts.models import AccessKey, Role, User, UserGroup, Group
from tableapi.models import SetRule, Table, Column
from tests.project.access import world
ids = world.create_example_objects("URL/sso/callback/")
user = User.objects.get(login="alice")
AccessKey.objects.get_or_create(user=user, name="script", defaults={"prefix": "sb_examp", "digest": "0" * 64})
paths = {}
for route in world.routes():
    try:
        paths[route] = world.example_path(route, ids)
    except AssertionError as error:
        paths[route] = f"! {error}"
print("PATHS" + json.dumps(paths))
"""
# No pages: endpoints, files and parts of pages.
OTHER_PREFIXES = (
    "rest/", "^", "healthz", "readyz", "metrics", "api/schema", "api/collections", "api/me", "api/docs/redoc.js",
)  # fmt: skip
# ReDoc draws every operation at once, so axe-core needs minutes.
DRAWN_BY_LIBRARIES = ("api/docs/reference",)
# Pages of records that no example has.
NOT_REACHED = (
    "notifications/<slug:entry>/", "account/keys/<slug:sys_id>/revoke/",
    "tables/<slug:table>/import/<slug:sys_id>/", "tables/<slug:table>/saved/<slug:sys_id>/",
    "tables/<slug:table>/<slug:sys_id>/attachments/<slug:entry>/",
    "tables/<slug:table>/<slug:sys_id>/attachments/<slug:entry>/pages/<int:number>/",
    "admin/r/<path:content_type_id>/<path:object_id>/", "admin/(?P<url>.*)$",
)  # fmt: skip
# The worker creates this record at once and removes the row.
REMOVED_EXAMPLES = "admin/tableapi/deferredrecord/<"
# Pages with more than one look, and those of nobody.
MORE_PATHS = (
    "/nowhere", "/tables/task/?sysparm_query=active=true", "/collections/{collection}/?q=paper",
    "/admin/accounts/user/?q=nobody-at-all", "/find/?q=a",
)  # fmt: skip
ANONYMOUS_PATHS = ("/login/", "/login/?local=1&signed_out=1", "/sso/callback/", "/nowhere")
ROUTES = sorted(
    {
        route
        for route in world.routes()
        if not route.startswith((*OTHER_PREFIXES, REMOVED_EXAMPLES)) and route not in DRAWN_BY_LIBRARIES
    }
)
LOOKS = ((DESKTOP_SIZE, "light"), (PHONE_SIZE, "dark"))
CHANGE_THEME = """theme => {
  document.documentElement.dataset.theme = theme;
  if (document.documentElement.hasAttribute("x-data")) Alpine.$data(document.documentElement).switchTheme(theme);
  document.documentElement.dispatchEvent(new Event("themechange"));
}"""


class PageCheck:
    """Opens pages in light on a desktop or in dark on a phone."""

    def __init__(self, browser: Browser, product: Stack, paths: dict[str, str], *, checks_all_looks: bool) -> None:
        self.checks_all_looks = checks_all_looks
        self.visitor, self.paths = Visitor(browser, product, viewport=DESKTOP_SIZE), paths
        self.anonymous = Visitor(browser, product, viewport=DESKTOP_SIZE)
        self.visitor.sign_in("alice")

    def is_page(self, path: str) -> bool:
        response = self.visitor.page.request.get(path, max_redirects=0, headers={"Accept": "text/html"})
        assert response.status != 404, f"{path} does not exist; add an example to tests/project/access/world.py"
        return response.status == 200 and "<!doctype html>" in response.text()[:200].lower()

    def check(self, path: str, visitor: Visitor | None = None) -> None:
        visitor = visitor or self.visitor
        page = visitor.page
        page.set_viewport_size(PHONE_SIZE)
        visitor.open(path)
        if page.locator("#swagger-ui").count():
            page.locator(".opblock-tag").first.wait_for()
        assert visitor.overflow_px() <= 0, f"{path} is wider than a phone"
        # About half of the pages in each look, and with --nightly every page in both.
        for size, theme in LOOKS if self.checks_all_looks else [LOOKS[crc32(path.encode()) % len(LOOKS)]]:
            page.set_viewport_size(size)
            page.evaluate(CHANGE_THEME, theme)
            assert_no_findings(page)
        problems, visitor.problems = visitor.problems, []
        assert not problems


@pytest.fixture(scope="module")
def page_check(request: pytest.FixtureRequest, browser: Browser, product: Stack) -> Iterator[PageCheck]:
    completed = manage("shell", "-c", CREATE_EXAMPLES.replace("URL", product.url), env=product.env)
    assert completed.returncode == 0, completed.stderr
    paths = json.loads(completed.stdout.partition("PATHS")[2])
    check = PageCheck(browser, product, paths, checks_all_looks=request.config.getoption("--nightly"))
    yield check
    check.visitor.context.close()
    check.anonymous.context.close()


@pytest.mark.parametrize("route", ROUTES)
def test_page_has_no_fault(page_check: PageCheck, route: str):
    path = page_check.paths[route]
    if route not in NOT_REACHED and page_check.is_page(path):
        page_check.check(path)


@pytest.mark.parametrize("path", MORE_PATHS)
def test_state_of_a_page_has_no_fault(page_check: PageCheck, path: str):
    collection_path = page_check.paths["collections/<slug:sys_id>/"]
    page_check.check(path.replace("/collections/{collection}/", collection_path))


@pytest.mark.parametrize("path", ANONYMOUS_PATHS)
def test_page_of_a_visitor_has_no_fault(page_check: PageCheck, path: str):
    page_check.check(path, page_check.anonymous)
