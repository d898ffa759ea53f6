"""The choices of a column as lines of text.

>>> parse_choices("New\\n2: In use\\n\\nGone: for good")
{'new': 'New', '2': 'In use', 'Gone': 'for good'}
>>> format_choices({"new": "New", "2": "In use"})
'New\\n2: In use'
"""

from .names import slug_of_label

SEPARATOR = ": "


def parse_choices(text: str) -> dict[str, str]:
    """The labels by value, in order. A line has a value and a label, or a label from which the value is derived."""
    choices: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        value, separator, label = line.partition(SEPARATOR)
        if not separator:
            value, label = slug_of_label(line) or line, line
        choices.setdefault(value.strip(), label.strip())
    return choices


def format_choices(choices: dict[str, str]) -> str:
    return "\n".join(
        label if slug_of_label(label) == value and SEPARATOR not in label else f"{value}{SEPARATOR}{label}"
        for value, label in choices.items()
    )


def is_editable(choices: dict[str, str]) -> bool:
    """Whether the choices survive as lines. Otherwise, for example with a value that contains a colon, they cannot be
    edited here.

    >>> is_editable({"1": "New", "b": "B: c"}), is_editable({"a: b": "New"}), is_editable({"1": " padded"})
    (True, False, False)
    """
    parsed = parse_choices(format_choices(choices))
    return list(parsed.items()) == list(choices.items())
