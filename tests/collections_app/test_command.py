"""`manage.py collections import` and `export`: folders of files and collections, there and back."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from collections_app.documents import storage
from collections_app.models import Collection, Document
from collections_app.transfer import folder_format
from tests.collections_app import library

pytestmark = pytest.mark.django_db


def run(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("collections", *words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three documents, one in a folder of its own, with what is no document."""
    found = tmp_path / "in"
    (found / "deep" / ".hidden").mkdir(parents=True)
    (found / "handbook.md").write_text(library.HANDBOOK)
    (found / "handbook.md.metadata.json").write_text('{"type": "manual", "priority": 2}')
    (found / "deep" / "notes.txt").write_text("Notes about the mailbox.")
    (found / "report.pdf").write_bytes(library.pdf("The yearly report"))
    (found / "deep" / ".hidden" / "secret.txt").write_text("hidden")
    (tmp_path / "outside.txt").write_text("outside")
    (found / "link.txt").symlink_to(tmp_path / "outside.txt")
    return found


def stored() -> dict[str, Any]:
    """What each document is, apart from when and by whom it was loaded."""
    found = Document.objects.filter(deleted_at=None).select_related("newest")
    return {
        each.doc_id: (each.newest.filename, each.newest.format, each.newest.sha256, each.newest.metadata)
        for each in found
        if each.newest is not None
    }


class TestImport:
    def test_a_folder_becomes_a_collection(self, folder: Path):
        said = run("import", str(folder), "--collection", "Handbooks", "--metadata", '{"status": "new"}')
        assert {doc_id: (name, format, metadata) for doc_id, (name, format, _, metadata) in stored().items()} == {
            "handbook.md": ("handbook.md", "markdown", {"status": "new", "type": "manual", "priority": 2}),
            "deep/notes.txt": ("notes.txt", "text", {"status": "new"}),
            "report.pdf": ("report.pdf", "pdf", {"status": "new"}),
        }
        assert "queued: deep/notes.txt" in said and said.splitlines()[-2] == "3 queued" and "No worker answers" in said

    def test_now_loads_without_a_worker(self, folder: Path):
        said = run("import", str(folder), "--collection", "Handbooks", "--now")
        assert "3 loaded" in said and "worker" not in said
        assert set(Document.objects.values_list("newest__state", flat=True)) == {"ready"}

    def test_a_second_time_loads_only_what_is_new_or_changed(self, folder: Path):
        run("import", str(folder), "--collection", "Handbooks", "--now")
        (folder / "new.txt").write_text("New")
        (folder / "deep" / "notes.txt").write_text("Changed")
        (folder / "report.pdf.metadata.json").write_text('{"type": "report"}')
        said = run("import", str(folder), "--collection", "Handbooks", "--now")
        assert "there already: handbook.md" in said and "3 loaded" in said
        assert len(stored()) == 4 and stored()["report.pdf"][3] == {"type": "report"}
        assert Document.objects.get(doc_id="deep/notes.txt").newest.generation == 2  # type: ignore[union-attr]

    def test_bytes_that_are_there_under_another_id_are_not_loaded_again(self, folder: Path):
        collection = library.make()
        library.add(collection, "Notes about the mailbox.", filename="mine.txt", format="text", doc_id="mine")
        said = run("import", str(folder), "--collection", "Handbooks", "--now")
        assert "there already: deep/notes.txt" in said and set(stored()) == {"mine", "handbook.md", "report.pdf"}

    def test_a_file_changed_to_what_another_holds_is_loaded(self, folder: Path):
        (folder / "other.txt").write_text("What both hold")
        run("import", str(folder), "--collection", "Handbooks", "--now")
        (folder / "deep" / "notes.txt").write_text("What both hold")
        said = run("import", str(folder), "--collection", "Handbooks", "--now")
        assert "loaded: deep/notes.txt" in said and "there already: other.txt" in said
        assert stored()["deep/notes.txt"][2] == stored()["other.txt"][2]

    @pytest.mark.parametrize("written", [b'{"type": "Ger\xe4t"}', b"[]", b"[" * 100_000], ids=["latin", "list", "deep"])
    def test_metadata_that_cannot_be_read_refuse_their_file_alone(self, folder: Path, written: bytes):
        (folder / "handbook.md.metadata.json").write_bytes(written)
        out = io.StringIO()
        with pytest.raises(CommandError, match="Not every file"):
            call_command("collections", "import", str(folder), "--collection", "Handbooks", stdout=out)
        assert "refused: handbook.md handbook.md.metadata.json holds no JSON object in UTF-8." in out.getvalue()
        assert set(stored()) == {"deep/notes.txt", "report.pdf"}

    def test_what_cannot_be_loaded_does_not_stop_the_rest(self, folder: Path):
        (folder / "a.exe").write_bytes(b"MZ\x00\x00")
        (folder / "b.md").write_text("")
        (folder / "c.pdf").write_bytes(b"%PDF-1.7 broken")
        out = io.StringIO()
        with pytest.raises(CommandError, match="Not every file"):
            call_command("collections", "import", str(folder), "--collection", "Handbooks", "--now", stdout=out)
        said = out.getvalue()
        assert "refused: a.exe" in said and "refused: b.md The file is empty." in said and "failed: c.pdf" in said
        assert "3 loaded" in said

    def test_what_failed_is_tried_again(self, folder: Path):
        (folder / "c.pdf").write_bytes(b"%PDF-1.7 broken")
        for _ in range(2):
            with pytest.raises(CommandError):
                run("import", str(folder), "--collection", "Handbooks", "--now")
        assert Document.objects.get(doc_id="c.pdf").newest.state == "failed"  # type: ignore[union-attr]

    def test_the_rights_of_a_user_count(self, folder: Path, carl: User, bob: User):
        run("import", str(folder), "--collection", "Handbooks", "--user", "carl")
        assert set(Document.objects.values_list("created_by", flat=True)) == {carl.pk}
        for login, said in (("bob", "no collection"), ("nobody", "no active user")):
            with pytest.raises(CommandError, match=said):
                run("import", str(folder), "--collection", "Handbooks", "--user", login)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["missing", "--collection", "A"], "is no folder"),
            ([".", "--collection", "A", "--metadata", "[1]"], "--metadata holds no JSON object"),
            ([".", "--collection", "a\x07b"], "control characters"),
        ],
        ids=["folder", "metadata", "name"],
    )
    def test_what_cannot_be_asked_is_told(self, words: list[str], said: str, tmp_path: Path):
        with pytest.raises(CommandError, match=said):
            run("import", str(tmp_path / words[0]), *words[1:])
        assert not Document.objects.exists()

    def test_metadata_of_a_wrong_type_refuses_its_file(self, folder: Path):  # C10
        (folder / "handbook.md.metadata.json").write_text('{"priority": "high"}')
        with pytest.raises(CommandError):
            run("import", str(folder), "--collection", "Handbooks")
        assert set(stored()) == {"deep/notes.txt", "report.pdf"}


class TestExport:
    def test_there_and_back_gives_the_same_documents(self, folder: Path, tmp_path: Path):
        run("import", str(folder), "--collection", "Handbooks", "--now")
        collection = Collection.objects.get()
        library.add(collection, "Same bytes", filename="", format="text", doc_id="one", metadata={"type": "a"})
        library.add(collection, "Same bytes", filename="Same.txt", format="text", doc_id="two", metadata={"type": "a"})
        library.add(collection, "Same bytes", filename="same.TXT", format="text", doc_id="три", metadata={})
        before = stored()
        said = run("export", "Handbooks", str(tmp_path / "out"))
        assert said.splitlines()[-1].startswith("6 documents are written")
        collection.mark_deleted()
        Document.objects.update(deleted_at=collection.refreshed().deleted_at)
        run("import", str(tmp_path / "out"), "--collection", "Again", "--now")
        assert stored() == before
        assert "6 there already" in run("import", str(tmp_path / "out"), "--collection", "Again", "--now")

    def test_files_hold_what_was_sent(self, tmp_path: Path):
        library.add(library.make(), "Ünïcode", filename="a.txt", format="text", metadata={"type": "é"})
        run("export", "Handbooks", str(tmp_path / "out"))
        assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == "Ünïcode"
        assert json.loads((tmp_path / "out" / "a.txt.metadata.json").read_text()) == {"type": "é"}

    def test_no_name_leads_out_of_the_folder(self, tmp_path: Path):  # C13
        collection = library.make()
        names = [
            "../../up.txt",
            "/etc/passwd",
            "C:\\x.txt",
            "..",
            "con.txt",
            "a\u202etxt.exe",
            "documents.jsonl",
            "x" * 300,
        ]
        for number, name in enumerate(names):
            document = library.add(collection, f"Text {number}", filename="a.txt", format="text", doc_id=f"../{number}")
            assert document.newest is not None
            document.newest.filename = name[:255]
            document.newest.save()
        out = tmp_path / "deep" / "out"
        run("export", "Handbooks", str(out))
        assert sorted(path.name for path in tmp_path.rglob("*") if path.parent != out) == ["deep", "out"]
        written = [path for path in out.iterdir() if path.name != folder_format.LIST]
        assert len(written) == len(names) and all(path.is_file() and not path.is_symlink() for path in written)
        assert {path.read_text() for path in written} == {f"Text {number}" for number in range(len(names))}

    def test_it_writes_over_nothing(self, tmp_path: Path):
        library.add(library.make())
        (tmp_path / "precious.txt").write_text("mine")
        with pytest.raises(CommandError, match="is not empty"):
            run("export", "Handbooks", str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]

    def test_a_collection_that_is_not_there_is_told(self, tmp_path: Path):
        with pytest.raises(CommandError, match="There is no collection 'Nothing'"):
            run("export", "Nothing", str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()

    def test_the_list_of_an_export_can_lead_nowhere_else(self, tmp_path: Path):
        folder, outside = tmp_path / "in", tmp_path / "outside.txt"
        folder.mkdir()
        outside.write_text("outside")
        told = {"file": "../outside.txt", "doc_id": "x", "filename": "x.txt", "format": "text"}
        (folder / folder_format.LIST).write_text(json.dumps(told))
        assert run("import", str(folder), "--collection", "Handbooks") == "The folder is empty.\n"

    @pytest.mark.parametrize(
        ("written", "said"),
        [(b'{"file": 1}', "line 1, does not say"), (b"{}\xff", "line 1, holds no JSON object in UTF-8")],
        ids=["wrong", "latin"],
    )
    def test_a_broken_list_is_told(self, tmp_path: Path, written: bytes, said: str):
        (tmp_path / folder_format.LIST).write_bytes(written)
        with pytest.raises(CommandError, match=said):
            run("import", str(tmp_path), "--collection", "Handbooks")


def test_on_a_terminal_there_is_a_bar(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "b.md").write_text("")
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    with pytest.raises(CommandError):
        call_command("collections", "import", str(folder), "--collection", "Handbooks", stdout=out)
    said = out.getvalue()
    assert f"[{'#' * 24}] 4 of 4" in said and "refused: b.md" in said and "queued:" not in said


def test_the_bytes_are_those_that_were_sent(tmp_path: Path):
    sent = library.pdf("Whole", "and unchanged")
    (tmp_path / "a.pdf").write_bytes(sent)
    run("import", str(tmp_path), "--collection", "Handbooks", "--now")
    found = Document.objects.select_related("newest").get().newest
    assert found is not None and storage.content(found) == sent and found.pages == 2
