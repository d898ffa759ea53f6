"""Names of tables and columns, derived from their labels. `designer.js` does the same while a label is typed."""

from unicodedata import normalize

from tableapi.models.tables import MAX_NAME_LENGTH


def slug_of_label(label: str) -> str:
    """
    >>> slug_of_label("Bought on (date)"), slug_of_label("Größe"), slug_of_label("2nd owner"), slug_of_label("数")
    ('bought_on_date', 'grosse', '2nd_owner', '')
    """
    plain = normalize("NFKD", label.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    words = "".join(letter if letter.isalnum() else " " for letter in plain).split()
    return "_".join(words)[:MAX_NAME_LENGTH].rstrip("_")


def name_of_label(label: str, prefix: str = "") -> str:
    """
    >>> name_of_label("2nd owner"), name_of_label("Seat", "x_"), name_of_label("数")
    ('c_2nd_owner', 'x_seat', '')
    """
    slug = slug_of_label(label)
    prefix = "c_" if slug[:1].isdigit() and not prefix else prefix
    return f"{prefix}{slug}"[:MAX_NAME_LENGTH].rstrip("_") if slug else ""
