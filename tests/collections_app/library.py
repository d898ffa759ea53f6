"""Creates and loads collections and documents for the tests of pages, admin and demo."""

from typing import Any

from accounts.models import Role
from collections_app import embed
from collections_app.documents import storage
from collections_app.ingest import worker
from collections_app.models import Collection, Document, EmbeddingSpace

HANDBOOK = "# Printers\n\nReplace the toner when the lamp is red.\n\n# Mail\n\nA full mailbox refuses mail."


def role_id(name: str) -> str:
    return str(Role.objects.get_or_create(name=name)[0].pk)


def make_library_collection(
    name: str = "Handbooks", *, readers: tuple[str, ...] = (), writers: tuple[str, ...] = ()
) -> Collection:
    collection = Collection(name=name, space=embed.default_space())
    collection.reader_roles = [role_id(reader) for reader in readers]
    collection.writer_roles = [role_id(writer) for writer in writers]
    collection.save()
    return collection


def add_document(collection: Collection, text: str = HANDBOOK, *, is_loaded: bool = True, **options: Any) -> Document:
    """Stores a document, and processes it unless `is_loaded` is false."""
    columns: dict[str, Any] = {
        "filename": "handbook.md",
        "format": "markdown",
        "metadata": {},
        "doc_id": None,
        **options,
    }
    store_result = storage.store_document(
        collection=collection, data=text.encode(), on_duplicate="replace", user_id="", takes_lease=is_loaded, **columns
    )
    if is_loaded:
        worker.process_in_request(store_result, timeout_s=30)
    return Document.objects.select_related("newest").get(pk=store_result.document.pk)


def add_failing_document(collection: Collection, **options: Any) -> Document:
    """Adds a file named .pdf that is not a PDF."""
    return add_document(collection, "%PDF-1.7 broken", filename="broken.pdf", format="pdf", **options)


def with_retired_model(collection: Collection) -> Collection:
    retired_space = EmbeddingSpace.objects.create(provider="retired", model="gone", dimensions=8)
    Collection.objects.filter(pk=collection.pk).update(space=retired_space)
    return collection.refreshed()


def pdf(*pages: str) -> bytes:
    """A small PDF with one line per page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 14 Tf 60 720 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} /Contents {len(objects)} 0 R >>"
        objects.append(page.encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    file_content, offsets = b"%PDF-1.4\n", []
    for number, pdf_object in enumerate(objects, 1):
        offsets.append(len(file_content))
        file_content += b"%d 0 obj\n%s\nendobj\n" % (number, pdf_object)
    xref_entries = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    xref_header = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(file_content))
    return file_content + xref_header + xref_entries + trailer
