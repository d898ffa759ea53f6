"""Writes the formulas of Office files as a line of text, such as (a + b)/2 or x^2."""

import re
from collections.abc import Callable
from typing import Any

NAMESPACE = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FORMULA = NAMESPACE + "oMath"
# Needs no parentheses as an operand.
ATOM = re.compile(r"[\w.]*|\([^()]*\)")


def formula_text(element: Any) -> str:
    """
    >>> from lxml import etree
    >>> def text(content):
    ...     return formula_text(etree.fromstring(f'<oMath xmlns="{NAMESPACE[1:-1]}">{content}</oMath>'))
    >>> text("<r><t>x=</t></r><f><num><r><t>a+b</t></r></num><den><r><t>2</t></r></den></f>")
    'x=(a+b)/2'
    >>> text('<nary><naryPr><chr val="∑"/></naryPr><sub><r><t>i=1</t></r></sub><sup><r><t>n</t></r></sup>'
    ...      "<e><sSup><e><r><t>i</t></r></e><sup><r><t>2</t></r></sup></sSup></e></nary>")
    '∑_(i=1)^n i^2'
    >>> text("<rad><deg/><e><r><t>2x</t></r></e></rad><d><e><r><t>a</t></r></e><e><r><t>b</t></r></e></d>")
    '√(2x)(a|b)'
    >>> text("<m><mr><e><r><t>1</t></r></e><e><r><t>2</t></r></e></mr><mr><e><r><t>3</t></r></e></mr></m>")
    '[1, 2; 3]'
    """
    if element.tag == NAMESPACE + "t":
        return element.text or ""
    name = str(element.tag).removeprefix(NAMESPACE)
    if name in STRUCTURES:
        return STRUCTURES[name](element)
    return "" if name.endswith("Pr") else "".join(formula_text(child) for child in element)


def parts(element: Any, name: str) -> list[str]:
    return [formula_text(part) for part in element.findall(NAMESPACE + name)]


def operand(element: Any, name: str) -> str:
    text = "".join(parts(element, name))
    return text if ATOM.fullmatch(text) else f"({text})"


def scripts(element: Any, base: str = "e") -> str:
    """Returns the base with its subscript and superscript."""
    marks = (("_", "sub"), ("^", "sup"), ("_", "lim"))
    return (operand(element, base) if base else "") + "".join(
        mark + text for mark, name in marks if (text := operand(element, name))
    )


def character(element: Any, name: str, default: str) -> str:
    value_element = element.find(f"{NAMESPACE}{element.tag.removeprefix(NAMESPACE)}Pr/{NAMESPACE}{name}")
    return default if value_element is None else str(value_element.get(NAMESPACE + "val", value_element.get("val", "")))


def delimited(element: Any) -> str:
    content = character(element, "sepChr", "|").join(parts(element, "e"))
    return character(element, "begChr", "(") + content + character(element, "endChr", ")")


STRUCTURES: dict[str, Callable[[Any], str]] = {
    "f": lambda element: f"{operand(element, 'num')}/{operand(element, 'den')}",
    "sSub": scripts,
    "sSup": scripts,
    "sSubSup": scripts,
    "limLow": scripts,
    "limUpp": lambda element: f"{operand(element, 'e')}^{operand(element, 'lim')}",
    "sPre": lambda element: scripts(element, "") + operand(element, "e"),
    "rad": lambda element: "".join(parts(element, "deg")) + f"√({''.join(parts(element, 'e'))})",
    "nary": lambda element: f"{character(element, 'chr', '∫')}{scripts(element, '')} {''.join(parts(element, 'e'))}",
    "d": delimited,
    "func": lambda element: f"{''.join(parts(element, 'fName'))} {operand(element, 'e')}",
    "acc": lambda element: "".join(parts(element, "e")) + character(element, "chr", "\u0302"),
    "eqArr": lambda element: "; ".join(parts(element, "e")),
    "m": lambda element: "[" + "; ".join(parts(element, "mr")) + "]",
    "mr": lambda element: ", ".join(parts(element, "e")),
}
