"""Quality of answers from a text with headings: questions about this documentation."""

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

PAGES = ("operations", "single-sign-on", "collections", "table-api", "api", "access-rules")
# What is asked, and the heading under which it is answered.
QUESTIONS = {
    "restore a backup": "Backup and restore",
    "how do I rotate the secret keys": "Rotating keys",
    "what does SIGHUP do": "Signals",
    "listen on port 443 with a certificate": "TLS",
    "run on two hosts": "Several hosts",
    "how much memory does it need": "Sizing",
    "a worker was killed, what happens": "When something dies",
    "metrics for prometheus": "Watching it",
    "database roles with fewer rights": "Separate roles in the database",
    "upgrade to a new version": "Upgrade",
    "settings for Keycloak Entra Okta": "What to type for your provider",
    "roles given at sign-in": "Roles",
    "refresh signing keys of the provider": "Certificates",
    "log out at the provider too": "Signing out",
    "person cannot sign in": "When somebody is not let in",
    "user script at login": "The script",
    "filter by metadata number range": "Metadata and filters",
    "same document loaded twice": "Once and not twice",
    "who may read a collection": "Who may what",
    "nested folders of documents": "Folders",
    "difference between PUT and PATCH": "PUT or PATCH",
    "If-Match etag conflict": "Without overwriting each other",
    "Idempotency-Key retry": "Once and not twice",
    "create a table over the API": "Making tables",
    "display values of references": "Display values",
    "read the next page cursor": "Page after page",
    "deferred creation of records": "Records that are created later",
    "HTML sanitizing of rich text": "Formatted text",
    "delete a record cascade": "Deleting",
    "which rule decides": "Which rule decides",
    "invalid api key 401": "Credentials",
    "choose columns of the answer": "Which fields",
    "table inheritance": "Tables that extend others",
    "error codes of the table API": "Errors",
}


def load() -> tuple[Collection, int]:
    collection = Collection.objects.create(name="documentation", space=embed.default_space())
    count = 0
    for name in PAGES:
        accepted = storage.store_document(
            collection=collection, data=(ROOT / "docs" / f"{name}.md").read_bytes(), filename=f"{name}.md",
            format="markdown", metadata={}, doc_id=name, on_duplicate="error", user_id="", is_held=True,
        )  # fmt: skip
        count += worker.load_now(accepted).chunks_count
    return Collection.objects.select_related("space").get(pk=collection.pk), count


def holds(hit: Hit, heading: str) -> bool:
    """It stands under the heading, or has it in its text."""
    return heading in hit.heading_path or any(line.lstrip("# ") == heading for line in hit.page_content.splitlines())


def main() -> None:
    lines = {line.lstrip("# ") for name in PAGES for line in (ROOT / "docs" / f"{name}.md").read_text().splitlines()}
    if absent := sorted(set(QUESTIONS.values()) - lines):
        raise SystemExit(f"these headings are in none of the pages: {', '.join(absent)}")
    collection, count = load()
    ranks, named = 0.0, 0
    for question, heading in QUESTIONS.items():
        found = pipeline.search([collection], pipeline.SearchRequest(query=question, k=5, filter=Filter())).hits
        ranks += next((1 / place for place, hit in enumerate(found, 1) if holds(hit, heading)), 0)
        named += heading in found[0].heading_path
    print(f"{len(PAGES)} pages, {count} passages, {len(QUESTIONS)} questions")
    print(f"mean reciprocal rank {ranks / len(QUESTIONS):.3f}; the first answer names its heading: {named}")


if __name__ == "__main__":
    main()
