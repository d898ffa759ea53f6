"""The page of a passage with its context."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from collections_app.documents import deletion
from collections_app.models import Collection, Document
from tests.collections_app import library
from tests.collections_app.test_pages import HTMX_HEADERS, collection_page_path, page_html

pytestmark = pytest.mark.django_db

# Each sentence becomes a separate passage.
SENTENCES = tuple(f"Sentence {word} is long enough for a passage. " * 2 for word in "abcdefghijkl")


def context_path(document: Document, number: int = 0, generation: int = 1, count: str = "") -> str:
    arguments = [document.collection_id, document.pk, generation, number]
    return reverse("passage", args=arguments) + (f"?around={count}" if count else "")


@pytest.fixture
def long_document() -> Document:
    collection = library.make_library_collection(readers=("itil",))
    Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=0)
    return library.add_document(collection.refreshed(), "\n\n".join(SENTENCES), filename="long.txt", format="text")


def sentence_text(number: int) -> str:
    return SENTENCES[number].strip()


def test_result_links_to_its_context_and_download(as_rita: Client, long_document: Document):
    page = page_html(as_rita.get(collection_page_path(long_document.collection), {"query": "Sentence f"}))
    hit_html = page[page.index('<ol class="hits">') : page.index("</ol>")]
    assert re.search(rf'href="{context_path(long_document, 5)}"[^>]*>Show context</a>', hit_html)
    assert "download>Download long.txt</a>" in hit_html and "<strong>long.txt</strong></a>" not in hit_html


def test_context_equals_the_text_of_the_document(as_rita: Client, long_document: Document):
    page = page_html(as_rita.get(context_path(long_document, 5)))
    previous_passage, passage, next_passage = (sentence_text(number) for number in (4, 5, 6))
    assert f">{previous_passage} \n\n</span>{passage}<span " in page and f"> \n\n{next_passage}</span>" in page
    assert sentence_text(3) not in page and sentence_text(7) not in page
    assert "<h1>long.txt</h1>" in page and "download>Download long.txt</a>" in page


def test_overlapping_passages_repeat_nothing(as_rita: Client, long_document: Document):
    Collection.objects.filter(pk=long_document.collection_id).update(chunk_size=200, chunk_overlap=100)
    library.add_document(
        long_document.collection.refreshed(),
        "\n\n".join(SENTENCES),
        doc_id=long_document.doc_id,
        format="text",
        metadata={"n": 2},
    )
    page = page_html(as_rita.get(context_path(long_document, 3, generation=2, count="32")))
    assert all(page.count(sentence.strip()) == 1 for sentence in SENTENCES)


def test_more_context_is_offered_until_none_is_left(as_rita: Client, long_document: Document):
    short_response, full_response = (
        as_rita.get(context_path(long_document, 5)),
        as_rita.get(context_path(long_document, 5, count="8")),
    )
    assert f'href="{context_path(long_document, 5, count="2")}"' in page_html(short_response)
    assert all(sentence_text(number) in page_html(full_response) for number in range(12))
    assert "This is the whole document." in page_html(full_response) and "?around=" not in page_html(full_response)


def test_context_of_a_long_document_is_limited(as_rita: Client, long_document: Document):
    longer_document = library.add_document(
        long_document.collection, "\n\n".join(SENTENCES * 3), filename="longer.txt", format="text"
    )
    page = page_html(as_rita.get(context_path(longer_document, 0, count="32")))
    assert "Download the document to read more." in page and "?around=" not in page and "whole document" not in page


@pytest.mark.parametrize("count", ["0", "-1", "33", "many", "1" * 30, "\u0662"])
def test_number_of_neighbours_is_clamped(as_rita: Client, long_document: Document, count: str):
    assert f'href="{context_path(long_document, 5, count="2")}"' in page_html(
        as_rita.get(context_path(long_document, 5, count=count))
    )


def test_htmx_request_gets_only_a_fragment(as_rita: Client, long_document: Document):
    fragment = page_html(as_rita.get(context_path(long_document, 5), headers={**HTMX_HEADERS, "HX-Target": "around"}))
    assert fragment.count("hx-swap-oob") == 3 and "<html" not in fragment and sentence_text(5) not in fragment


def test_text_of_documents_is_never_markup(as_carl: Client):  # C25
    hostile_text = "Toner. " * 20 + "\n\n<script>alert(1)</script> " + "x" * 90 + "\n\n<img src=x onerror=alert(2)>"
    collection = library.make_library_collection()
    Collection.objects.filter(pk=collection.pk).update(chunk_size=150, chunk_overlap=0)
    document = library.add_document(collection.refreshed(), hostile_text, filename="<i>evil.txt", format="text")
    for number in (0, 1):
        page = page_html(as_carl.get(context_path(document, number, count="8")))
        assert "&lt;script&gt;alert(1)" in page and not re.search(r"<(script>|img src=x|i>evil)", page)


def test_context_of_an_unreadable_collection_is_404(as_bob: Client, as_rita: Client, long_document: Document):  # C02
    other_collection = library.make_library_collection("Others", readers=("itil",))
    assert as_bob.get(context_path(long_document)).status_code == 404
    assert as_rita.get(reverse("passage", args=[other_collection.pk, long_document.pk, 1, 0])).status_code == 404


def test_deleted_passage_is_reported_in_one_sentence(as_rita: Client, long_document: Document):
    for number in (12, 10**30):
        response = as_rita.get(context_path(long_document, number))
        assert response.status_code == 404 and "The document does not contain this passage." in page_html(response)
    library.add_document(long_document.collection, "Something else.", doc_id=long_document.doc_id, format="text")
    response = as_rita.get(context_path(long_document, 0))
    assert response.status_code == 404 and "This document has changed." in page_html(response)
    assert "Something else." in page_html(as_rita.get(context_path(long_document, 0, generation=2)))
    deletion.delete_document(long_document.collection, long_document.doc_id)
    response = as_rita.get(context_path(long_document, 0, generation=2))
    assert response.status_code == 404 and "The document no longer exists." in page_html(response)
