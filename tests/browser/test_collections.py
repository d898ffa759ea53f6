"""The collection pages as people use them: with a mouse, by keyboard alone, on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.collection_pages import LOADED_WITHIN_MS, documents, file, make_collection, wait_until_ready
from tests.browser.visitor import Visitor
from tests.collections_app.library import pdf
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser

MANUAL = pdf("Before the first use charge the battery", "A blinking lamp means that the toner is empty")


def test_somebody_loads_a_file_sees_it_become_ready_and_finds_its_passage(at_manuals: Visitor):
    page = at_manuals.page
    page.set_input_files("#files", file("manual.pdf", MANUAL, "application/pdf"))
    sent = page.locator("#uploads li")
    expect(sent).to_contain_text("manual.pdf")
    expect(sent.get_by_role("progressbar", name="Sending manual.pdf")).to_have_js_property("position", 1)
    wait_until_ready(page)  # by itself: nothing was clicked
    expect(documents(page)).to_contain_text("2 pages")

    page.get_by_label("What are you looking for?").fill("toner empty")
    page.get_by_role("button", name="Search").click()
    first = page.locator(".hits li").first
    expect(first.locator("mark").first).to_be_visible()
    assert {text.lower() for text in first.locator("mark").all_inner_texts()} == {"toner", "empty"}
    expect(first).to_contain_text("manual.pdf")
    expect(first).to_contain_text("pages 1 to 2")
    assert "query=toner" in page.url and at_manuals.overflow() <= 0

    page.reload()  # the address holds the search
    expect(page.locator(".hits mark").first).to_be_visible()


def test_all_of_it_works_by_keyboard(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    page.get_by_label("What are you looking for?").focus()
    # Expected before the walk, whose questions the page answers after it has learnt of this:
    # a key pressed at once can overtake it, and the chooser opens unseen.
    with page.expect_file_chooser() as chosen:
        reached = walk(page, until="files")
        page.keyboard.press("Enter")
    assert reached[:2] == ["search-button", "SUMMARY"]
    chosen.value.set_files([file("manual.pdf", MANUAL), file("notes.txt", b"Notes about the mailbox")])
    wait_until_ready(page, 2)

    page.get_by_label("What are you looking for?").focus()
    page.keyboard.type("mailbox")
    page.keyboard.press("Enter")
    expect(page.locator(".hits mark").first).to_be_visible()

    page.get_by_role("button", name="Delete notes.txt").focus()
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Delete “notes.txt”?")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    expect(documents(page)).to_contain_text("notes.txt")

    expect(page.get_by_role("button", name="Delete notes.txt")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(documents(page)).not_to_contain_text("notes.txt")
    expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_focused()


def test_refreshed_list_asks_before_it_deletes(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    page.set_input_files("#files", file("notes.txt", b"Notes"))
    wait_until_ready(page)
    page.evaluate("""
        document.addEventListener("htmx:afterSwap", () =>
            setTimeout(() => document.querySelector("#documents button.danger").click()), {once: true});
        htmx.trigger(document.body, "uploaded");
    """)
    expect(page.get_by_role("dialog")).to_contain_text("Delete “notes.txt”?")
    expect(documents(page)).to_contain_text("notes.txt")


def walk(page: Page, until: str) -> list[str]:
    """Press Tab until this id has the focus; what had it on the way."""
    results: list[str] = []
    for _ in range(20):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.id || document.activeElement.tagName")
        if name == until:
            return results
        results.append(name)
    raise AssertionError(f"{until} is not reached: {results}")


def test_more_passages_are_read_on_from_the_first_new_one(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    kinds = '{"type": "note"}'
    page.get_by_text("Metadata for new uploads").click()
    page.get_by_label("JSON object, stored with each file").fill(kinds)
    notes = [file(f"note {number}.txt", f"Note {number} about the mailbox".encode()) for number in range(8)]
    page.set_input_files("#files", notes)
    wait_until_ready(page, 8)
    page.get_by_label("What are you looking for?").fill("mailbox")
    page.keyboard.press("Enter")
    expect(page.locator(".hits > li")).to_have_count(5)
    expect(page.locator(".hits > li").first).to_contain_text("type: note")
    expect(documents(page).locator("li").first).to_contain_text("type: note")

    page.get_by_role("link", name="Show more").focus()
    page.keyboard.press("Enter")

    expect(page.locator(".hits > li")).to_have_count(8)
    expect(page.locator(".hits > li").nth(5)).to_be_focused()
    expect(page.locator(".hits > li").nth(5)).to_be_in_viewport()

    page.set_input_files("#files", file("more.txt", b"More"))
    expect(page.locator("#uploads li")).to_have_count(1)  # those that arrived stand among the documents


def test_text_of_documents_is_shown_and_never_run(at_manuals: Visitor):  # C25 C26
    page = at_manuals.page
    evil = b"toner <img src=x onerror=alert(1)> <script>alert(2)</script> ![x](/evil.png)"
    page.on("dialog", lambda dialog: pytest.fail(f"run: {dialog.message}"))
    page.set_input_files("#files", file("<img src=x onerror=alert(3)>.txt", evil))
    wait_until_ready(page)
    page.get_by_label("What are you looking for?").fill("toner")
    page.keyboard.press("Enter")
    expect(page.locator(".hits .passage")).to_contain_text("<script>alert(2)</script> ![x](/evil.png)")
    assert page.locator(".hits img, .hits script, #documents img, #uploads img").count() == 0
    assert at_manuals.overflow() <= 0


def test_a_filter_that_cannot_be_read_says_where(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    page.get_by_label("What are you looking for?").fill("toner")
    page.get_by_text("Filter and search mode").click()
    page.get_by_label("Filter by metadata").fill("priority<<3")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#results").get_by_role("alert")).to_contain_text("position")


def test_a_search_that_fails_says_why_in_its_place(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    text = '<div id="results" aria-live="polite"><p role="alert">Not just now.</p></div>'
    page.route("**/*query=toner*", lambda route: route.fulfill(status=429, content_type="text/html", body=text))
    page.get_by_label("What are you looking for?").fill("toner")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#results").get_by_role("alert")).to_have_text("Not just now.")
    expect(page.locator("#trouble")).to_be_hidden()


def test_what_cannot_be_done_is_told_in_the_words_of_the_service(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    page.set_input_files("#files", file("a.txt", b"Soon gone"))
    wait_until_ready(page)
    other = at_desk.context.new_page()
    other.goto(page.url)
    for each in (other, page):
        each.get_by_role("button", name="Delete a.txt").click()
        each.get_by_role("dialog").get_by_role("button", name="Delete").click()
        if each is other:
            expect(documents(other)).to_contain_text("0 documents")
    expect(page.locator("#trouble")).to_have_text("The document no longer exists.")
    at_desk.complaints = [each for each in at_desk.complaints if "Status Error Code 404" not in each]  # meant


def test_somebody_reads_on_around_a_passage(at_manuals: Visitor):
    page = at_manuals.page
    text = "\n\n".join(f"Chapter {name}. " + "About the printer and its parts. " * 28 for name in "abcdefgh")
    page.set_input_files("#files", file("long.txt", text.encode()))
    wait_until_ready(page)
    page.get_by_label("What are you looking for?").fill("Chapter d")
    page.keyboard.press("Enter")
    hit = page.locator(".hits > li").filter(has_text="Chapter d.").first
    expect(hit.get_by_role("link", name="Download long.txt")).to_be_visible()

    hit.get_by_role("link", name="Show context").press("Enter")
    for name in "cde":
        expect(hit).to_contain_text(f"Chapter {name}.")
    expect(hit).not_to_contain_text("Chapter f.")
    expect(hit.locator("mark").first).to_be_visible()  # what was found stays marked
    more = hit.get_by_role("link", name="Show more before and after")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(hit).to_contain_text("Chapter f.")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(hit.get_by_text("This is the whole document.")).to_be_focused()
    assert at_manuals.overflow() <= 0


def test_a_passage_of_a_document_that_is_gone_is_told_where_it_was_asked(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    page.set_input_files("#files", [file(f"{name}.txt", f"Note {name}\n".encode() * 90) for name in "abcde"])
    wait_until_ready(page, 5)
    page.get_by_label("What are you looking for?").fill("note")
    page.keyboard.press("Enter")
    last = page.locator(".hits > li").last
    name = last.locator("strong").inner_text()
    page.get_by_role("button", name=f"Delete {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(documents(page)).to_contain_text("4 ready")
    last.get_by_role("link", name="Show context").click()
    expect(page.locator("#trouble")).to_have_text("The document no longer exists.")
    expect(page.locator("#trouble")).to_be_in_viewport()
    assert page.evaluate("scrollY") > 200  # far below the place of the sentence
    at_desk.complaints = [
        complaint for complaint in at_desk.complaints if "Status Error Code 404" not in complaint
    ]  # meant


def test_a_collection_is_deleted_after_a_question(at_manuals: Visitor):
    page = at_manuals.page
    name = page.get_by_role("heading", level=1).inner_text()
    page.get_by_role("button", name="Delete collection").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/collections/")
    expect(page.get_by_role("status").first).to_contain_text("deleted.")
    expect(page.locator("#collections")).not_to_contain_text(name)


def test_a_newcomer_searches_the_documentation(at_desk: Visitor):
    at_desk.sign_in("alice")
    page = at_desk.page
    page.get_by_role("link", name="Collections", exact=True).click()
    page.locator("#collections").wait_for()
    find = page.get_by_label("Find a collection")
    if find.count():  # there are many: other tests made them
        find.fill("product")
    expect(page.locator("#collections")).to_contain_text("Product documentation")
    page.get_by_role("link", name="Product documentation").click()
    expect(documents(page)).not_to_contain_text("queued", timeout=LOADED_WITHIN_MS)
    expect(documents(page)).not_to_contain_text("embedding", timeout=LOADED_WITHIN_MS)
    page.get_by_label("What are you looking for?").fill("How do I restore a backup?")
    page.keyboard.press("Enter")
    expect(page.locator(".hits li").first).to_contain_text("backup.md")


def test_who_may_read_nothing_sees_nothing(visitor: Visitor):
    visitor.sign_in("bob")
    assert visitor.open("/collections/") == 200
    expect(visitor.page.locator("main")).to_contain_text(
        "You don't have access to any collections. Ask an administrator"
    )
    assert visitor.page.get_by_role("button", name="Create collection").count() == 0
    assert visitor.overflow() <= 0
    assert visitor.open("/admin/collections_app/collection/") == 403


def test_a_session_that_has_ended_leads_to_the_sign_in(at_desk: Visitor):
    at_desk.sign_in("carl")
    address = make_collection(at_desk.page)
    page = at_desk.page
    at_desk.context.clear_cookies()
    page.get_by_label("Name", exact=True).fill("x")  # the list of documents asks for itself
    page.wait_for_url("**/login/?next=/collections/**")
    page.get_by_label("Login").fill("carl")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(address)


def test_the_administration_opens_for_who_runs_collections(visitor: Visitor):
    visitor.sign_in("carl")
    make_collection(visitor.page)
    visitor.page.get_by_role("link", name="Settings").click()
    visitor.page.wait_for_url("**/admin/collections_app/collection/**")
    assert visitor.overflow() <= 0
    assert visitor.page.get_by_role("link", name="Re-embed").count() == 0
    visitor.page.goto(visitor.page.url.replace("/change/", "/reembed/"))
    visitor.page.get_by_text("There is nothing to do.").wait_for()
    assert visitor.overflow() <= 0
