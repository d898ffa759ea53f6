"""The page of a document: its text in passages, the highlighted one, and links that can be shared."""

import re
from html import escape, unescape

import pytest
from django.test import Client
from django.urls import reverse

from collections_app.documents import deletion
from collections_app.models import Collection, Document
from tests.collections_app import library
from tests.collections_app.test_pages import collection_page_path, page_html

pytestmark = pytest.mark.django_db

# Each sentence becomes a separate passage.
SENTENCES = tuple(f"Sentence {number:02} is long enough for a passage. " * 2 for number in range(24))


def document_path(document: Document, query: str = "") -> str:
    return reverse("document-page", args=[document.collection_id, document.pk]) + query


@pytest.fixture
def long_document() -> Document:
    collection = library.make_library_collection(readers=("itil",))
    Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=0)
    return library.add_document(collection.refreshed(), "\n\n".join(SENTENCES), filename="long.txt", format="text")


def test_result_links_to_its_passage_and_download(as_rita: Client, long_document: Document):
    page = page_html(as_rita.get(collection_page_path(long_document.collection), {"query": "Sentence 05"}))
    path = re.escape(document_path(long_document, "?version=1&amp;passage=6&amp;results="))
    assert (
        re.search(f'<a href="{path}[^"#]+#passage-6">long.txt</a>', page) and "download>Download long.txt</a>" in page
    )


@pytest.mark.parametrize("is_search_of_all", [False, True])
def test_linked_passage_leads_back_to_the_results(as_rita: Client, long_document: Document, is_search_of_all: bool):
    search_path = reverse("search-collections") if is_search_of_all else collection_page_path(long_document.collection)
    search_url = f"{search_path}?query=Sentence+05&filter=type%3Dmanual%5EORtype%3D&k=10"
    (url,) = re.findall('<a href="([^"]+)">long.txt</a>', page_html(as_rita.get(search_url)))[:1]
    back_link = f'<a href="{escape(search_url)}#hit-1">Back to results</a>'

    page = page_html(as_rita.get(unescape(url)))
    assert back_link in page
    (next_url,) = re.findall('<a href="([^"]+)" rel="next">', page)
    assert back_link in page_html(as_rita.get(document_path(long_document, unescape(next_url))))


@pytest.mark.parametrize(
    "results",
    ["", "//evil.example/", "https://evil.example/collections/search/?", "javascript:alert(1)", "/logout/?", "OTHER?"],
)
def test_link_back_leads_only_to_a_search(as_rita: Client, long_document: Document, results: str):
    results = results.replace("OTHER", collection_page_path(library.make_library_collection("Other")))
    response = as_rita.get(document_path(long_document), {"results": results})
    assert response.status_code == 200 and "Back to results" not in page_html(response)


def test_linked_passage_is_highlighted_among_the_others(as_rita: Client, long_document: Document):
    page = page_html(as_rita.get(document_path(long_document, "?version=1&passage=22")))
    assert re.findall(r'class="document-passage( is-cited)?" id="passage-(\d+)"', page) == [
        ("", "21"), (" is-cited", "22"), ("", "23"), ("", "24"),
    ]  # fmt: skip
    assert "Part 2 of 2" in page and SENTENCES[21].strip() in page and SENTENCES[19].strip() not in page


def test_pages_of_the_text_repeat_and_omit_nothing(as_rita: Client, long_document: Document):
    Collection.objects.filter(pk=long_document.collection_id).update(chunk_size=200, chunk_overlap=100)
    document = library.add_document(
        long_document.collection.refreshed(), "\n\n".join(SENTENCES), doc_id="overlapping", format="text"
    )
    pages = [page_html(as_rita.get(document_path(document, f"?page={number}"))) for number in (1, 2)]
    assert all("".join(pages).count(sentence.strip()) == 1 for sentence in SENTENCES)
    cited_page = page_html(as_rita.get(document_path(document, "?passage=3")))
    assert all(cited_page.count(sentence.strip()) <= 1 for sentence in SENTENCES)


@pytest.mark.parametrize("query", ["?page=0", "?page=99", "?page=x", "?passage=0", "?passage=-1", f"?page={'1' * 30}"])
def test_invalid_numbers_are_ignored(as_rita: Client, long_document: Document, query: str):
    response = as_rita.get(document_path(long_document, query))
    assert response.status_code == 200 and "is-cited" not in page_html(response)


def test_link_to_a_former_version_says_that_the_document_has_changed(as_rita: Client, long_document: Document):
    assert "does not contain this passage" in page_html(as_rita.get(document_path(long_document, "?passage=25")))
    library.add_document(long_document.collection, "Something else.", doc_id=long_document.doc_id, format="text")
    page = page_html(as_rita.get(document_path(long_document, "?version=1&passage=1")))
    assert "has changed since the link was created" in page and "Something else." in page and "is-cited" not in page
    assert "is-cited" in page_html(as_rita.get(document_path(long_document, "?version=2&passage=1")))


def test_links_of_earlier_releases_lead_to_the_passage(as_rita: Client, as_bob: Client, long_document: Document):
    path = document_path(long_document) + "1/passages/5/"
    assert as_rita.get(path)["Location"] == document_path(long_document, "?version=1&passage=6#passage-6")
    assert as_bob.get(path).status_code == 404


def test_document_of_an_unreadable_collection_is_404(as_bob: Client, as_rita: Client, long_document: Document):  # C02
    other_collection = library.make_library_collection("Others", readers=("itil",))
    assert as_bob.get(document_path(long_document)).status_code == 404
    assert as_rita.get(reverse("document-page", args=[other_collection.pk, long_document.pk])).status_code == 404
    deletion.delete_document(long_document.collection, long_document.doc_id)
    assert as_rita.get(document_path(long_document)).status_code == 404


def test_readers_change_nothing(as_rita: Client, as_carl: Client, long_document: Document):
    reader_page = page_html(as_rita.get(document_path(long_document)))
    assert "Download" in reader_page
    assert not any(word in reader_page for word in ("/delete/", "Edit metadata", "Access"))
    own_document = library.add_document(library.make_library_collection("Own"), metadata={"type": "<b>manual"})
    writer_page = page_html(as_carl.get(document_path(own_document)))
    assert ">Delete</button>" in writer_page and "<dt>type</dt><dd>&lt;b&gt;manual</dd>" in writer_page


def test_unfinished_and_failed_documents_have_a_page(as_carl: Client):
    collection = library.make_library_collection()
    queued_document = library.add_document(collection, is_loaded=False)
    assert "still being extracted" in page_html(as_carl.get(document_path(queued_document)))
    failed_document = library.add_failing_document(collection)
    assert "could not be extracted" in page_html(as_carl.get(document_path(failed_document)))


def test_text_of_documents_is_never_markup(as_carl: Client):  # C25
    hostile_text = "<script>alert(1)</script> <img src=x onerror=alert(2)> [a](javascript:alert(3)) ![b](http://evil/)"
    collection = library.make_library_collection()
    for file_format in ("text", "markdown"):
        document = library.add_document(collection, hostile_text, filename="<i>evil", format=file_format)
        page = page_html(as_carl.get(document_path(document)))
        assert "&lt;script&gt;alert(1)" in page
        assert not re.search(r'<(script>|img src=x|img src="http|i>evil)|href="javascript', page)


def test_passage_that_continues_a_table_shows_its_header(as_rita: Client, long_document: Document):
    rows = "".join(f"| part {number} | {number} |\n" for number in range(30))
    text = f"| Part | Price |\n|---|---|\n{rows}"
    document = library.add_document(long_document.collection, text, filename="prices.txt", format="text")
    page = page_html(as_rita.get(document_path(document)))

    assert (
        page.count("<th>Part</th><th>Price</th>")
        == page.count("<table>")
        == document.displayed_version().chunks_count
        > 3
    )
    assert all(page.count(f"<td>part {number}</td>") == 1 for number in range(30))


def test_generated_ids_are_shown_to_writers(as_carl: Client, as_rita: Client, long_document: Document):
    document = library.add_document(long_document.collection, "A short text.", format="text")
    assert document.doc_id == document.pk
    assert f"ID {document.pk} ·" in page_html(as_carl.get(document_path(document)))
    assert f"ID {document.pk} ·" not in page_html(as_rita.get(document_path(document)))
