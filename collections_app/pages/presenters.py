"""Prepares documents and passages for templates, as safe HTML, or as plain text that the templates escape."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from collections_app.models import Document
from collections_app.models.documents import UNFINISHED_STATES, VersionState
from collections_app.pages.passage_html import PassageRenderer
from collections_app.search.passages import Hit

MAX_METADATA_LENGTH = 200
# A passage whose score is below this share of the best one is a weaker result, which the page folds.
WEAK_SCORE_SHARE = 0.25
# A longer address of results would make the links to documents longer than servers accept.
MAX_RESULTS_URL = 4_000
PREVIOUS_VERSION_NOTE = "Searches use the previous version."
# Errors of the file itself, for which a retry is not offered because it would fail again.
FILE_ERROR_CODES = ("damaged", "encrypted", "limit_pages")
FIX_FILE_ADVICE = "Retrying won't help. Fix the file and replace it."


def page_range(first: int | None, last: int | None, label: str | None = None, last_label: str | None = None) -> str:
    """The numbers of pages in the file, with the printed ones if these differ.

    >>> page_range(3, 3), page_range(3, 4), page_range(None, None)
    ('page 3', 'pages 3 to 4', '')
    >>> page_range(3, 3, "iii", "iii"), page_range(3, 4, "iii", "1")
    ('page iii (3 in the file)', 'pages iii to 1 (3 to 4 in the file)')
    """
    if first is None:
        return ""
    is_range = last is not None and last > first
    noun = "pages" if is_range else "page"
    numbers = f"{first} to {last}" if is_range else str(first)
    if not label or not last_label:
        return f"{noun} {numbers}"
    labels = f"{label} to {last_label}" if is_range else label
    return f"{noun} {numbers}" if labels == numbers else f"{noun} {labels} ({numbers} in the file)"


def size_text(size: int) -> str:
    """Formats a configured size, which is usually a round number.

    >>> size_text(32 * 1024 * 1024), size_text(1_500_000)
    ('32\\xa0MB', '1.4\\xa0MB')
    """
    return filesizeformat(size).replace(".0", "")


def metadata_line(metadata: Mapping[str, Any]) -> str:
    """Formats metadata in one line of limited length.

    >>> metadata_line({"type": "manual", "tags": ["a", "b"], "priority": 2})
    'type: manual · tags: ["a", "b"] · priority: 2'
    >>> metadata_line({}), len(metadata_line({"a": "x" * 1000}))
    ('', 200)
    """
    line = " · ".join(f"{name}: {value}" for name, value in metadata_values(metadata))
    return line if len(line) <= MAX_METADATA_LENGTH else line[: MAX_METADATA_LENGTH - 1] + "…"


def metadata_values(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """
    >>> metadata_values({"type": "manual", "tags": ["a", "b"]})
    [('type', 'manual'), ('tags', '["a", "b"]')]
    """
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in metadata.items()
    ]


def hit_contexts(hits: Sequence[Hit], results_url: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the strong and the weaker hits. The hits are sorted, so the weaker ones are the last."""
    renderer, contexts = PassageRenderer(), ([], [])  # type: ignore[var-annotated]
    for rank, hit in enumerate(hits, start=1):
        is_weak = hit.score < hits[0].score * WEAK_SCORE_SHARE
        hit_url = f"{results_url}#hit-{rank}" if len(results_url) <= MAX_RESULTS_URL else ""
        context = {
            "rank": rank,
            "passage": hit,
            "url": passage_url(hit.collection_id, hit.document_id, hit.generation, hit.chunk_index, hit_url),
            "title": hit.filename or hit.doc_id,
            "pages": page_range(hit.page, hit.page_end, hit.page_label, hit.page_label_end),
            "headings": " > ".join(hit.heading_path),
            "metadata": metadata_line(hit.metadata),
            "score": f"{hit.score:.2f}",
            "html": renderer.render(hit.page_content, hit.format, hit.highlights),
        }
        contexts[is_weak].append(context)
    return contexts


def passage_url(collection_id: str, document_id: str, generation: int, number: int, results_url: str = "") -> str:
    """The URL contains the generation, because the same number is a different passage in other versions."""
    url = reverse("document-page", args=[collection_id, document_id])
    results = f"&{urlencode({'results': results_url})}" if results_url else ""
    return f"{url}?version={generation}&passage={number + 1}{results}#passage-{number + 1}"


def document_context(document: Document, is_searched: bool) -> dict[str, Any]:
    version = document.displayed_version()
    is_file_error = version.error_code in FILE_ERROR_CODES
    has_failed = version.state == VersionState.FAILED
    is_unready = has_failed or version.state in UNFINISHED_STATES
    title = document.page_title()
    return {
        "id": document.pk,
        "doc_id": document.doc_id,
        "title": title,
        # Omitted if it is generated, because it then means nothing to users.
        "secondary_name": document.doc_id if document.doc_id not in (title, document.pk) else "",
        "version": version,
        "metadata": metadata_line(version.metadata),
        "error": version.error if has_failed else "",
        # Shown to writers only; other users cannot fix the file.
        "advice": FIX_FILE_ADVICE if has_failed and is_file_error else "",
        # Searches use the previous version until the new one is ready, even if that fails.
        "note": PREVIOUS_VERSION_NOTE if is_unready and is_searched else "",
        "may_retry": has_failed and not is_file_error,
        "may_reprocess": version.state in (VersionState.READY, VersionState.EMPTY),
    }
