"""The properties match their documentation."""

import re

from config.env import ROOT
from system import property_definitions


def test_page_lists_every_property_with_its_type_and_default():
    rows = re.findall(
        r"^\| `([a-z_.]+)` \| (\w+) \| `?([\w,]*)`? \|", (ROOT / "docs/reference/properties.md").read_text(), re.M
    )

    documented_properties = {
        name: (property_type, "" if default == "empty" else default) for name, property_type, default in rows
    }
    assert documented_properties == {
        definition.name: (definition.type, definition.default)
        for definition in property_definitions.DEFINITIONS.values()
    }
