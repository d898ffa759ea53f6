"""Watched folders: what is loaded and deleted, what changes nothing, and that links lead nowhere."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from collections_app.models import Collection, Document, Source, SourceFile, Version
from collections_app.sources import folder, watching
from tests.collections_app.http.calls import KeyCaller
from tests.collections_app.library import pdf
from tests.collections_app.sources.world import Site, add_source, html, refresh, run_due, texts

pytestmark = pytest.mark.django_db
LoadFolder = Callable[[], Source]


def write(folder: Path, path: str, text: str | bytes = "The toner is red.") -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def load_folder(watched: Path, manager: KeyCaller, collection: Collection) -> LoadFolder:
    def load() -> Source:
        source = add_source(manager, collection, "folder", watched)
        run_due()
        return source.refreshed()

    return load


def problems(source: Source) -> dict[str, str]:
    return {problem["path"]: problem["message"] for problem in source.problems}


def an_hour_passes() -> None:
    for file in SourceFile.objects.filter(missing_since__isnull=False):
        assert file.missing_since is not None
        SourceFile.objects.filter(pk=file.pk).update(missing_since=file.missing_since - timedelta(hours=1))


def test_files_are_loaded_under_their_paths(watched: Path, load_folder: LoadFolder, collection: Collection):
    write(watched, "a.txt", "One.")
    write(watched, "b/c/Größe.md", "Two.")
    write(watched, ".git/config", "Hidden.")
    source = load_folder()
    assert (source.state, source.problems) == ("ok", [])
    assert texts(collection) == {"a.txt": "One.", "b/c/Größe.md": "Two."}
    assert set(Version.objects.values_list("filename", flat=True)) == {"a.txt", "Größe.md"}


def test_changed_file_replaces_its_document(watched: Path, load_folder: LoadFolder, collection: Collection):
    write(watched, "a.txt", "One.")
    write(watched, "b.txt", "Two.")
    source = load_folder()
    write(watched, "a.txt", "Uno.")  # as long as before
    write(watched, "new.txt", "Three.")
    refresh(source)
    assert texts(collection) == {"a.txt": "Uno.", "b.txt": "Two.", "new.txt": "Three."}
    assert Document.objects.count() == 3 and Version.objects.filter(document__doc_id="b.txt").count() == 1


def test_document_that_was_deleted_is_loaded_again(
    watched: Path, load_folder: LoadFolder, collection: Collection, manager: KeyCaller
):
    write(watched, "a.txt")
    source = load_folder()
    manager.delete(f"/api/collections/{collection.pk}/documents/{Document.objects.get().pk}")
    assert texts(collection) == {}
    refresh(source)
    assert list(texts(collection)) == ["a.txt"]


def test_vanished_file_is_deleted_after_two_scans_an_hour_apart(
    watched: Path, load_folder: LoadFolder, collection: Collection
):
    for name in "abc":
        write(watched, f"{name}.txt")
    source = load_folder()
    (watched / "a.txt").unlink()
    for _ in range(3):
        refresh(source)
        assert list(texts(collection)) == ["a.txt", "b.txt", "c.txt"]
    an_hour_passes()
    refresh(source)
    assert list(texts(collection)) == ["b.txt", "c.txt"]
    assert source.files.count() == 2


def test_file_that_returns_is_kept(watched: Path, load_folder: LoadFolder, collection: Collection):
    for name in "abc":
        write(watched, f"{name}.txt")
    source = load_folder()
    os.rename(watched / "a.txt", watched.parent / "a.txt")
    refresh(source)
    os.rename(watched.parent / "a.txt", watched / "a.txt")
    an_hour_passes()
    refresh(source)
    (watched / "a.txt").unlink()
    refresh(source)
    assert "a.txt" in texts(collection)


def test_vanished_file_that_was_not_loaded_deletes_no_document(
    watched: Path, load_folder: LoadFolder, collection: Collection, manager: KeyCaller, site: Site
):
    write(watched, "a.txt", "One.")
    write(watched, "b.txt", "Two.")
    write(watched, "c.txt", "Three.")
    write(watched, "page.pdf", "<html>")
    source = load_folder()
    manager.upload(b"From a user.", "note.txt", collection_name=collection.name, doc_id="page.pdf")
    site.answers["/guide"] = html("From the web.")
    add_source(manager, collection, "page", site.url(), doc_id="b.txt")
    run_due()
    for name in ("b.txt", "page.pdf"):
        (watched / name).unlink()
    refresh(source)
    an_hour_passes()
    refresh(source)
    assert source.files.count() == 2
    assert texts(collection) == {
        "a.txt": "One.", "b.txt": "From the web.", "c.txt": "Three.", "page.pdf": "From a user.",
    }  # fmt: skip


def test_file_that_became_unsupported_is_deleted_with_its_document(
    watched: Path, load_folder: LoadFolder, collection: Collection
):
    write(watched, "a.txt", "One.")
    write(watched, "b.txt", "Two.")
    source = load_folder()
    write(watched, "b.txt", bytes(range(256)))
    for _ in range(2):
        assert list(problems(refresh(source))) == ["b.txt"]
    assert texts(collection) == {"a.txt": "One.", "b.txt": "Two."}
    (watched / "b.txt").unlink()
    refresh(source)
    an_hour_passes()
    refresh(source)
    assert texts(collection) == {"a.txt": "One."}


def test_file_that_an_interrupted_scan_finds_again_is_kept(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    for name in "abc":
        write(watched, f"{name}.txt")
    source = load_folder()
    os.rename(watched / "c.txt", watched.parent / "c.txt")
    refresh(source)
    os.rename(watched.parent / "c.txt", watched / "c.txt")
    write(watched, "a.txt", "Changed.")
    with monkeypatch.context() as context:
        context.setattr(watching, "SCAN_BUDGET_S", -1.0)
        refresh(source)
    (watched / "c.txt").unlink()
    an_hour_passes()
    refresh(source)
    assert "c.txt" in texts(collection)


def test_document_that_a_user_deleted_before_does_not_matter(
    watched: Path, load_folder: LoadFolder, collection: Collection, manager: KeyCaller
):
    for name in "abc":
        write(watched, f"{name}.txt")
    source = load_folder()
    (watched / "a.txt").unlink()
    refresh(source)
    document = Document.objects.get(doc_id="a.txt")
    manager.delete(f"/api/collections/{collection.pk}/documents/{document.pk}")
    an_hour_passes()
    assert refresh(source).state == "ok" and source.files.count() == 2


def remove_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replace_by_link(folder: Path) -> None:
    remove_folder(folder)
    folder.symlink_to(folder.with_name("elsewhere"))


def lose_most_files(folder: Path) -> None:
    for name in "abc":
        (folder / f"{name}.txt").unlink()


def empty_folder(folder: Path) -> None:
    remove_folder(folder)
    folder.mkdir()


@pytest.mark.parametrize("damage", [remove_folder, replace_by_link, lose_most_files, empty_folder])
def test_damaged_folder_changes_nothing_and_warns(
    watched: Path, load_folder: LoadFolder, collection: Collection, as_carl: Any, damage: Callable[[Path], None]
):
    for name in "abcde":
        write(watched, f"{name}.txt")
    source = load_folder()
    assert "cannot be refreshed" not in as_carl.get("/admin/").content.decode()
    damage(watched)
    write(watched.with_name("elsewhere"), "new.txt")
    for _ in range(2):
        failed = refresh(source)
        assert failed.state == "failing" and "Nothing was changed." in failed.error and str(watched) not in failed.error
        an_hour_passes()
    assert list(texts(collection)) == ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"]
    assert "1 source cannot be refreshed." in as_carl.get("/admin/").content.decode()


def test_half_of_the_files_may_vanish(watched: Path, load_folder: LoadFolder, collection: Collection):
    for name in "abcd":
        write(watched, f"{name}.txt")
    source = load_folder()
    for name in "ab":
        (watched / f"{name}.txt").unlink()
    assert refresh(source).state == "ok"
    (watched / "c.txt").unlink()  # with the two before, it is more than half
    an_hour_passes()
    assert refresh(source).state == "failing"
    assert len(texts(collection)) == 4


def test_other_device_changes_nothing(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    write(watched, "a.txt", "One.")
    source = load_folder()
    assert source.device == os.stat(watched).st_dev
    Source.objects.update(device=source.device + 1)
    write(watched, "a.txt", "Other.")
    assert refresh(source).error == watching.OTHER_DEVICE
    assert texts(collection) == {"a.txt": "One."}


def test_folder_of_another_device_is_skipped(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    """Its files may be gone because it is no longer mounted."""
    for path in ("a.txt", "mounted/b.txt", "mounted/deep/c.txt"):
        write(watched, path)
    source = load_folder()
    assert len(texts(collection)) == 3
    inode, fstat = os.stat(watched / "mounted").st_ino, os.fstat

    def fstat_of_another_device(descriptor: int) -> Any:
        status = fstat(descriptor)
        values = list(status)
        values[2] += status.st_ino == inode
        return os.stat_result(values)

    monkeypatch.setattr(os, "fstat", fstat_of_another_device)
    for _ in range(2):
        assert problems(refresh(source)) == {"mounted/": "The folder is on another device."}
        an_hour_passes()
    assert len(texts(collection)) == 3


def deny(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Tests may run as root, who may read everything."""
    open_file = os.open

    def open_unless_denied(path: str, *arguments: Any, **options: Any) -> int:
        if path == name:
            raise PermissionError
        return open_file(path, *arguments, **options)

    monkeypatch.setattr(os, "open", open_unless_denied)


def test_unreadable_folder_changes_nothing(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    write(watched, "a.txt")
    source = load_folder()
    deny(monkeypatch, watched.name)
    assert refresh(source).error == folder.UNAVAILABLE
    assert list(texts(collection)) == ["a.txt"]


@pytest.mark.parametrize("denied", ["sub", "b.txt"])
def test_unreadable_part_is_reported_and_kept(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch, denied: str
):
    write(watched, "a.txt", "One.")
    write(watched, "sub/b.txt", "Two.")
    source = load_folder()
    deny(monkeypatch, denied)
    write(watched, "sub/b.txt", "Changed.")
    for _ in range(2):
        path, message = ("sub/", "The folder cannot be read.") if denied == "sub" else ("sub/b.txt", folder.READ_ERROR)
        assert problems(refresh(source)) == {path: message}
        an_hour_passes()
    assert texts(collection) == {"a.txt": "One.", "sub/b.txt": "Two."}


def test_links_and_special_files_are_not_followed(
    watched: Path, load_folder: LoadFolder, collection: Collection, tmp_path: Path
):
    write(tmp_path, "secret/key.txt", "Secret.")
    write(watched, "a.txt", "One.")
    (watched / "file.txt").symlink_to(tmp_path / "secret/key.txt")
    (watched / "folder").symlink_to(tmp_path / "secret")
    (watched / "own.txt").symlink_to("a.txt")
    os.mkfifo(watched / "pipe.txt")
    source = load_folder()
    assert set(problems(source)) == {"file.txt", "folder", "own.txt", "pipe.txt"}
    assert texts(collection) == {"a.txt": "One."}


@pytest.mark.parametrize("part", ["sub", "sub/a.txt"])
def test_link_that_appears_after_the_listing_is_not_followed(
    watched: Path, load_folder: LoadFolder, collection: Collection, tmp_path: Path, monkeypatch: Any, part: str
):
    write(tmp_path, "secret/a.txt", "Secret.")
    write(watched, "sub/a.txt", "One.")
    list_files = folder.list_files

    def list_then_replace(descriptor: int) -> Any:
        listing = list_files(descriptor)
        (watched / part).rename(tmp_path / "moved")
        (watched / part).symlink_to(tmp_path / "secret" / ("a.txt" if part.endswith("txt") else ""))
        return listing

    monkeypatch.setattr(folder, "list_files", list_then_replace)
    assert problems(load_folder()) == {"sub/a.txt": folder.READ_ERROR}
    assert texts(collection) == {}


def test_files_that_cannot_be_loaded_are_reported(
    watched: Path, load_folder: LoadFolder, collection: Collection, settings: Any
):
    settings.COLLECTIONS = {**settings.COLLECTIONS, "file_limit": 1024 * 1024}
    write(watched, "empty.txt", "")
    write(watched, "large.txt", "a" * (1024 * 1024 + 1))
    write(watched, "image.png", b"\x89PNG")
    write(watched, "page.pdf", "<html>")
    write(watched, "program", bytes(range(256)))
    write(watched, f"{'n' * 120}/{'n' * 120}.txt", "Deep.")
    (watched / os.fsdecode(b"\xff.txt")).write_text("Name")
    (watched / "new\nline.txt").write_text("Name")
    write(watched, "good.txt", "Good.")
    source = load_folder()
    messages = problems(source)
    assert messages["empty.txt"] == "The file is empty." and messages["large.txt"] == "The file is larger than 1 MB."
    assert messages["image.png"] == "The extension .png is not accepted."
    assert "has the extension .pdf" in messages["page.pdf"]
    assert "binary" in messages["program"]
    assert "\\udcff.txt" in messages and "new\nline.txt" in messages and f"{'n' * 120}/{'n' * 120}.txt" in messages
    assert source.state == "ok" and texts(collection) == {"good.txt": "Good."}


def test_names_that_are_equal_in_nfc_are_reported(watched: Path, load_folder: LoadFolder, collection: Collection):
    write(watched, "Caf\u00e9.txt", "One.")
    write(watched, "Cafe\u0301.txt", "Two.")
    assert list(problems(load_folder()).values()) == ["Two files have this name."]
    assert list(texts(collection)) == ["Caf\u00e9.txt"]


def test_file_that_becomes_empty_keeps_its_text(watched: Path, load_folder: LoadFolder, collection: Collection):
    write(watched, "a.txt", "One.")
    source = load_folder()
    write(watched, "a.txt", "")
    assert problems(refresh(source)) == {"a.txt": "The file is empty."}
    assert texts(collection) == {"a.txt": "One."}


def test_many_problems_are_summarized(watched: Path, load_folder: LoadFolder):
    for number in range(103):
        write(watched, f"{number:03}.png")
    source = load_folder()
    assert len(source.problems) == 101 and source.problems[-1]["message"] == "3 more files were not loaded."


def test_very_large_folder_changes_nothing(watched: Path, load_folder: LoadFolder, monkeypatch: Any):
    monkeypatch.setattr(folder, "MAX_ENTRIES", 2)
    for name in "abc":
        write(watched, f"{name}.txt")
    assert load_folder().error == "The folder has more than 2 files. Nothing was changed."
    assert not Document.objects.exists()


def test_long_scan_continues_later(watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: Any):
    for name in "abc":
        write(watched, f"{name}.txt", name)
    monkeypatch.setattr(watching, "SCAN_BUDGET_S", -1.0)
    source = load_folder()
    assert source.state == "waiting" and source.lease_token is None and list(texts(collection)) == ["a.txt"]
    monkeypatch.undo()
    assert refresh(source).state == "ok" and len(texts(collection)) == 3


def test_full_queue_postpones_the_rest(watched: Path, load_folder: LoadFolder, collection: Collection, settings: Any):
    settings.COLLECTIONS = {**settings.COLLECTIONS, "waiting_limit": 2}
    for name in "abc":
        write(watched, f"{name}.txt", name)
    source = load_folder()
    assert source.state == "waiting" and source.next_at > timezone.now() and len(texts(collection)) == 2
    assert refresh(source).state == "ok" and len(texts(collection)) == 3


def test_page_and_file_do_not_replace_each_other(
    watched: Path, load_folder: LoadFolder, collection: Collection, manager: KeyCaller, site: Site
):
    site.answers["/guide"] = html("From the web.")
    add_source(manager, collection, "page", site.url(), doc_id="a.txt")
    write(watched, "a.txt", "From the folder.")
    assert list(problems(load_folder())) == ["a.txt"]
    assert texts(collection) == {"a.txt": "From the web."}


def test_folder_that_is_no_longer_allowed_changes_nothing(
    watched: Path, load_folder: LoadFolder, collection: Collection, settings: Any
):
    write(watched, "a.txt")
    source = load_folder()
    settings.WATCH_DIRS = ()
    assert "no longer allows" in refresh(source).error
    assert list(texts(collection)) == ["a.txt"]


def test_unsupported_content_is_read_again_only_when_it_changes(
    watched: Path, load_folder: LoadFolder, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    write(watched, "page.pdf", "<html>")
    source = load_folder()
    with monkeypatch.context() as context:
        context.setattr(folder, "read_file", lambda *arguments: pytest.fail("read again"))
        assert list(problems(refresh(source))) == ["page.pdf"]
    write(watched, "page.pdf", pdf("Figures"))
    assert problems(refresh(source)) == {} and texts(collection) == {"page.pdf": "Figures"}
