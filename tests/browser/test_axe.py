"""The accessibility check finds faults, so that a page without findings means something."""

import pytest

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def test_a_control_without_a_label_is_found(desktop_visitor: Visitor):
    desktop_visitor.open("/login/")
    assert_no_findings(desktop_visitor.page)
    desktop_visitor.page.evaluate("document.querySelector('main').append(document.createElement('select'))")
    with pytest.raises(AssertionError, match="select-name"):
        assert_no_findings(desktop_visitor.page)
