"""Search quality in texts with headings: questions about this documentation."""

import django

django.setup()

from collections_app import embed  # noqa: E402
from collections_app.documents import storage  # noqa: E402
from collections_app.ingest import worker  # noqa: E402
from collections_app.metadata.filter import Filter  # noqa: E402
from collections_app.models import Collection  # noqa: E402
from collections_app.search import pipeline  # noqa: E402
from collections_app.search.passages import Hit  # noqa: E402
from config.env import ROOT  # noqa: E402

PAGES = (
    "how-to/deploy", "how-to/tls", "how-to/backup", "how-to/upgrade", "how-to/rotate-keys", "how-to/monitor",
    "how-to/connect-a-provider", "how-to/design-tables", "how-to/load-a-folder", "how-to/write-access-rules",
    "reference/single-sign-on", "reference/sign-in-errors", "reference/document-collections", "reference/table-api",
    "reference/http", "reference/access-rules",
)  # fmt: skip
# Questions, and the heading of the section that answers each.
QUESTIONS = {
    "restore a backup": "Back up and restore",
    "how do I rotate the secret keys": "Rotate keys",
    "what does SIGHUP do": "Signals",
    "listen on port 443 with a certificate": "In the service",
    "run on two hosts": "Several hosts",
    "how much memory does it need": "Sizing",
    "a worker was killed, what happens": "Failure modes",
    "metrics for prometheus": "Metrics",
    "database roles with fewer rights": "Separate roles",
    "upgrade to a new version": "Upgrade",
    "settings for Keycloak Entra Okta": "Values for your provider",
    "roles given at sign-in": "Roles",
    "refresh signing keys of the provider": "Certificates",
    "log out at the provider too": "Sign-out",
    "person cannot sign in": "Find out why a sign-in failed",
    "user script at login": "Script",
    "filter by metadata number range": "Filters",
    "same document loaded twice": "Duplicates",
    "who may read a collection": "Permissions",
    "nested folders of documents": "Load a folder",
    "difference between PUT and PATCH": "PUT and PATCH",
    "If-Match etag conflict": "Conditional requests",
    "Idempotency-Key retry": "Idempotent requests",
    "create a table over the API": "Create a table",
    "display values of references": "Display values",
    "read the next page cursor": "Pagination",
    "deferred creation of records": "Deferred records",
    "HTML sanitizing of rich text": "Formatted text",
    "delete a record cascade": "Deletion",
    "which rule decides": "Evaluation order",
    "invalid api key 401": "Credentials",
    "choose columns of the answer": "Fields",
    "table inheritance": "Table inheritance",
    "error codes of the table API": "Errors",
}


def load_pages() -> tuple[Collection, int]:
    collection = Collection.objects.create(name="documentation", space=embed.default_space())
    chunk_count = 0
    for page_name in PAGES:
        page = ROOT / "docs" / f"{page_name}.md"
        store_result = storage.store_document(
            collection=collection, data=page.read_bytes(), filename=page.name,
            format="markdown", metadata={}, doc_id=page_name, on_duplicate="error", user_id="", takes_lease=True,
        )  # fmt: skip
        chunk_count += worker.process_in_request(store_result).chunks_count
    return Collection.objects.select_related("space").get(pk=collection.pk), chunk_count


def contains_heading(hit: Hit, heading: str) -> bool:
    """Whether the passage is below this heading or contains it."""
    return heading in hit.heading_path or any(line.lstrip("# ") == heading for line in hit.page_content.splitlines())


def main() -> None:
    texts = [(ROOT / "docs" / f"{page_name}.md").read_text() for page_name in PAGES]
    page_lines = {line.lstrip("# ") for text in texts for line in text.splitlines()}
    if missing_headings := sorted(set(QUESTIONS.values()) - page_lines):
        raise SystemExit(f"no page has these headings: {', '.join(missing_headings)}")
    collection, chunk_count = load_pages()
    reciprocal_rank_sum, match_count = 0.0, 0
    for question, heading in QUESTIONS.items():
        hits = pipeline.search([collection], pipeline.SearchRequest(query=question, k=5, filter=Filter())).hits
        reciprocal_rank_sum += next((1 / rank for rank, hit in enumerate(hits, 1) if contains_heading(hit, heading)), 0)
        match_count += heading in hits[0].heading_path
    print(f"{len(PAGES)} pages, {chunk_count} passages, {len(QUESTIONS)} questions")
    mean_reciprocal_rank = reciprocal_rank_sum / len(QUESTIONS)
    print(f"mean reciprocal rank {mean_reciprocal_rank:.3f}; first passages that name the heading: {match_count}")


if __name__ == "__main__":
    main()
