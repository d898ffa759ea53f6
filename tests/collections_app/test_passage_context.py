"""The page of a passage with its context."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from collections_app.documents import deletion
from collections_app.models import Collection, Document
from tests.collections_app import library
from tests.collections_app.test_pages import HTMX_HEADERS, collection_page_path, visible_text

pytestmark = pytest.mark.django_db

# Each sentence becomes a separate passage.
SENTENCES = tuple(f"Sentence {word} is long enough for a passage. " * 2 for word in "abcdefghijkl")


def context_path(document: Document, number: int = 0, generation: int = 1, count: str = "") -> str:
    words = [document.collection_id, document.pk, generation, number]
    return reverse("passage", args=words) + (f"?around={count}" if count else "")


@pytest.fixture
def long_document() -> Document:
    collection = library.make_library_collection(readers=("itil",))
    Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=0)
    return library.add_document(collection.refreshed(), "\n\n".join(SENTENCES), filename="long.txt", format="text")


def sentences(number: int) -> str:
    return SENTENCES[number].strip()


def test_result_links_to_its_context_and_download(as_rita: Client, long_document: Document):
    page_text = visible_text(as_rita.get(collection_page_path(long_document.collection), {"query": "Sentence f"}))
    hit = page_text[page_text.index('<ol class="hits">') : page_text.index("</ol>")]
    assert re.search(rf'href="{context_path(long_document, 5)}"[^>]*>Show context</a>', hit)
    assert "download>Download long.txt</a>" in hit and "<strong>long.txt</strong></a>" not in hit


def test_context_equals_the_text_of_the_document(as_rita: Client, long_document: Document):
    page_text = visible_text(as_rita.get(context_path(long_document, 5)))
    previous, passage, following = (sentences(number) for number in (4, 5, 6))
    assert f">{previous} \n\n</span>{passage}<span " in page_text and f"> \n\n{following}</span>" in page_text
    assert sentences(3) not in page_text and sentences(7) not in page_text
    assert "<h1>long.txt</h1>" in page_text and "download>Download long.txt</a>" in page_text


def test_overlapping_passages_repeat_nothing(as_rita: Client, long_document: Document):
    Collection.objects.filter(pk=long_document.collection_id).update(chunk_size=200, chunk_overlap=100)
    library.add_document(
        long_document.collection.refreshed(),
        "\n\n".join(SENTENCES),
        doc_id=long_document.doc_id,
        format="text",
        metadata={"n": 2},
    )
    page_text = visible_text(as_rita.get(context_path(long_document, 3, generation=2, count="32")))
    assert all(page_text.count(line.strip()) == 1 for line in SENTENCES)


def test_more_context_is_offered_until_none_is_left(as_rita: Client, long_document: Document):
    first_response, last_response = (
        as_rita.get(context_path(long_document, 5)),
        as_rita.get(context_path(long_document, 5, count="8")),
    )
    assert f'href="{context_path(long_document, 5, count="2")}"' in visible_text(first_response)
    assert all(sentences(number) in visible_text(last_response) for number in range(12))
    assert "This is the whole document." in visible_text(last_response) and "?around=" not in visible_text(
        last_response
    )


def test_context_of_a_long_document_is_limited(as_rita: Client, long_document: Document):
    longer_document = library.add_document(
        long_document.collection, "\n\n".join(SENTENCES * 3), filename="longer.txt", format="text"
    )
    last_page = visible_text(as_rita.get(context_path(longer_document, 0, count="32")))
    assert (
        "Download the document to read more." in last_page
        and "?around=" not in last_page
        and "whole document" not in last_page
    )


@pytest.mark.parametrize("count", ["0", "-1", "33", "many", "1" * 30, "\u0662"])
def test_number_of_neighbours_is_clamped(as_rita: Client, long_document: Document, count: str):
    assert f'href="{context_path(long_document, 5, count="2")}"' in visible_text(
        as_rita.get(context_path(long_document, 5, count=count))
    )


def test_htmx_request_gets_only_a_fragment(as_rita: Client, long_document: Document):
    fragment = visible_text(
        as_rita.get(context_path(long_document, 5), headers={**HTMX_HEADERS, "HX-Target": "around"})
    )
    assert fragment.count("hx-swap-oob") == 3 and "<html" not in fragment and sentences(5) not in fragment


def test_text_of_documents_is_never_markup(as_carl: Client):  # C25
    hostile_text = "Toner. " * 20 + "\n\n<script>alert(1)</script> " + "x" * 90 + "\n\n<img src=x onerror=alert(2)>"
    collection = library.make_library_collection()
    Collection.objects.filter(pk=collection.pk).update(chunk_size=150, chunk_overlap=0)
    document = library.add_document(collection.refreshed(), hostile_text, filename="<i>evil.txt", format="text")
    for number in (0, 1):
        page_text = visible_text(as_carl.get(context_path(document, number, count="8")))
        assert "&lt;script&gt;alert(1)" in page_text and not re.search(r"<(script>|img src=x|i>evil)", page_text)


def test_context_of_an_unreadable_collection_is_404(as_bob: Client, as_rita: Client, long_document: Document):  # C02
    other_collection = library.make_library_collection("Others", readers=("itil",))
    assert as_bob.get(context_path(long_document)).status_code == 404
    assert as_rita.get(reverse("passage", args=[other_collection.pk, long_document.pk, 1, 0])).status_code == 404


def test_deleted_passage_is_reported_in_one_sentence(as_rita: Client, long_document: Document):
    for number in (12, 10**30):
        response = as_rita.get(context_path(long_document, number))
        assert response.status_code == 404 and "The document does not contain this passage." in visible_text(response)
    library.add_document(long_document.collection, "Something else.", doc_id=long_document.doc_id, format="text")
    response = as_rita.get(context_path(long_document, 0))
    assert response.status_code == 404 and "This document has changed." in visible_text(response)
    assert "Something else." in visible_text(as_rita.get(context_path(long_document, 0, generation=2)))
    deletion.delete_document(long_document.collection, long_document.doc_id)
    response = as_rita.get(context_path(long_document, 0, generation=2))
    assert response.status_code == 404 and "The document no longer exists." in visible_text(response)
