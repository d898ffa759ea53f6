"""The properties match their documentation."""

import re

from config.env import ROOT
from system import property_definitions


def test_page_lists_every_property_with_its_type_and_default():
    rows = re.findall(
        r"^\| `([a-z_.]+)` \| (\w+) \| `?(\w*)`? \|", (ROOT / "docs/reference/properties.md").read_text(), re.M
    )

    listed = {name: (kind, "" if default == "empty" else default) for name, kind, default in rows}
    assert listed == {known.name: (known.type, known.default) for known in property_definitions.DEFINITIONS.values()}
