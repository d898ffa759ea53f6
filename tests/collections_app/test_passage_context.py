"""The page of a passage with its context."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from collections_app.documents import deletion
from collections_app.models import Collection, Document
from tests.collections_app import library
from tests.collections_app.test_pages import HTMX, page_of, text_of

pytestmark = pytest.mark.django_db

# Each becomes a passage of its own.
LINES = tuple(f"Sentence {word} is long enough for a passage. " * 2 for word in "abcdefghijkl")


def around(document: Document, number: int = 0, generation: int = 1, count: str = "") -> str:
    words = [document.collection_id, document.pk, generation, number]
    return reverse("passage", args=words) + (f"?around={count}" if count else "")


@pytest.fixture
def long() -> Document:
    collection = library.make(readers=("itil",))
    Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=0)
    return library.add(collection.refreshed(), "\n\n".join(LINES), filename="long.txt", format="text")


def sentences(number: int) -> str:
    return LINES[number].strip()


def test_result_leads_to_it_and_names_its_download(as_rita: Client, long: Document):
    response = text_of(as_rita.get(page_of(long.collection), {"query": "Sentence f"}))
    hit = response[response.index('<ol class="hits">') : response.index("</ol>")]
    assert re.search(rf'href="{around(long, 5)}"[^>]*>Show context</a>', hit)
    assert "download>Download long.txt</a>" in hit and "<strong>long.txt</strong></a>" not in hit


def test_it_is_the_text_as_it_stands_in_the_document(as_rita: Client, long: Document):
    page_text = text_of(as_rita.get(around(long, 5)))
    before, passage, after = (sentences(number) for number in (4, 5, 6))
    assert f">{before} \n\n</span>{passage}<span " in page_text and f"> \n\n{after}</span>" in page_text
    assert sentences(3) not in page_text and sentences(7) not in page_text
    assert "<h1>long.txt</h1>" in page_text and "download>Download long.txt</a>" in page_text


def test_overlapping_passages_repeat_nothing(as_rita: Client, long: Document):
    Collection.objects.filter(pk=long.collection_id).update(chunk_size=200, chunk_overlap=100)
    library.add(long.collection.refreshed(), "\n\n".join(LINES), doc_id=long.doc_id, format="text", metadata={"n": 2})
    page_text = text_of(as_rita.get(around(long, 3, generation=2, count="32")))
    assert all(page_text.count(line.strip()) == 1 for line in LINES)


def test_more_of_it_is_offered_until_nothing_is_left(as_rita: Client, long: Document):
    first, last = as_rita.get(around(long, 5)), as_rita.get(around(long, 5, count="8"))
    assert f'href="{around(long, 5, count="2")}"' in text_of(first)
    assert all(sentences(number) in text_of(last) for number in range(12))
    assert "This is the whole document." in text_of(last) and "?around=" not in text_of(last)


def test_what_is_shown_ends_before_a_long_document_does(as_rita: Client, long: Document):
    longer = library.add(long.collection, "\n\n".join(LINES * 3), filename="longer.txt", format="text")
    last = text_of(as_rita.get(around(longer, 0, count="32")))
    assert "Download the document to read more." in last and "?around=" not in last and "whole document" not in last


@pytest.mark.parametrize("count", ["0", "-1", "33", "many", "1" * 30, "\u0662"])
def test_any_number_of_neighbours_is_brought_within_its_bounds(as_rita: Client, long: Document, count: str):
    assert f'href="{around(long, 5, count="2")}"' in text_of(as_rita.get(around(long, 5, count=count)))


def test_part_is_answered_in_pieces(as_rita: Client, long: Document):
    response = text_of(as_rita.get(around(long, 5), headers={**HTMX, "HX-Target": "around"}))
    assert response.count("hx-swap-oob") == 3 and "<html" not in response and sentences(5) not in response


def test_text_of_documents_is_never_markup(as_carl: Client):  # C25
    evil = "Toner. " * 20 + "\n\n<script>alert(1)</script> " + "x" * 90 + "\n\n<img src=x onerror=alert(2)>"
    collection = library.make()
    Collection.objects.filter(pk=collection.pk).update(chunk_size=150, chunk_overlap=0)
    document = library.add(collection.refreshed(), evil, filename="<i>evil.txt", format="text")
    for number in (0, 1):
        page_text = text_of(as_carl.get(around(document, number, count="8")))
        assert "&lt;script&gt;alert(1)" in page_text and not re.search(r"<(script>|img src=x|i>evil)", page_text)


def test_who_may_not_read_the_collection_finds_nothing(as_bob: Client, as_rita: Client, long: Document):  # C02
    other = library.make("Others", readers=("itil",))
    assert as_bob.get(around(long)).status_code == 404
    assert as_rita.get(reverse("passage", args=[other.pk, long.pk, 1, 0])).status_code == 404


def test_one_that_is_gone_is_told_in_a_sentence(as_rita: Client, long: Document):
    for number in (12, 10**30):
        response = as_rita.get(around(long, number))
        assert response.status_code == 404 and "The document does not contain this passage." in text_of(response)
    library.add(long.collection, "Something else.", doc_id=long.doc_id, format="text")
    response = as_rita.get(around(long, 0))
    assert response.status_code == 404 and "This document has changed." in text_of(response)
    assert "Something else." in text_of(as_rita.get(around(long, 0, generation=2)))
    deletion.delete_document(long.collection, long.doc_id)
    response = as_rita.get(around(long, 0, generation=2))
    assert response.status_code == 404 and "The document no longer exists." in text_of(response)
