"""Lists and reads the files of a folder below one of the allowed folders, without following symbolic links.

Each component is opened relative to the one above (`openat` with `O_NOFOLLOW`), so that replacing a folder with a link
while it is read does not lead elsewhere. A path is never opened as a whole.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from django.conf import settings

from collections_app.extract.file_formats import EXTENSIONS
from collections_app.extract.recognition import file_extension
from collections_app.models.collections import InvalidName, normalize_name
from collections_app.sources.errors import SourceFailed
from system.errors import InvalidParameter

# Entries of a folder, including those of its subfolders.
MAX_ENTRIES = 20_000
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
WATCHING_IS_OFF = "Watched folders are off. The operator can allow folders with SVC_WATCH_DIRS."
UNAVAILABLE = "The folder is missing or cannot be read. Nothing was changed."
READ_ERROR = "The file cannot be read."


@dataclass(slots=True)
class FolderListing:
    device: int
    # The relative path of each file as it is on the disk and its fingerprint, by `doc_id`.
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Messages about entries that are not loaded, by path. Those of folders end with a slash.
    problems: dict[str, str] = field(default_factory=dict)
    entry_count: int = 0

    def contains(self, path: str) -> bool:
        """Whether the file exists, or may exist in a folder that was not read."""
        folders = (f"{folder}/" for folder in map(str, PurePosixPath(path).parents))
        return path in self.files or path in self.problems or any(folder in self.problems for folder in folders)


def check_path(text: str) -> str:
    """Returns the normalized path of a folder that may be watched. Does not say which folders exist."""
    if not settings.WATCH_DIRS:
        raise InvalidParameter(WATCHING_IS_OFF, field="address")
    path = PurePosixPath(text)
    if "\x00" in text or ".." in path.parts or _allowed_folder(path) is None:
        allowed_text = ", ".join(map(str, settings.WATCH_DIRS))
        raise InvalidParameter(
            f"Enter the path of one of these folders, or of one below: {allowed_text}", field="address"
        )
    return str(path)


def _allowed_folder(path: PurePosixPath) -> Path | None:
    return next((folder for folder in settings.WATCH_DIRS if path.is_relative_to(folder)), None)


@contextmanager
def open_folder(path: str) -> Iterator[int]:
    """A descriptor of the folder. Only the folder that the operator has allowed may be a symbolic link."""
    allowed_folder = _allowed_folder(PurePosixPath(path))
    if allowed_folder is None:
        raise SourceFailed("The operator no longer allows this folder. Nothing was changed.")
    parts = PurePosixPath(path).relative_to(allowed_folder).parts
    with ExitStack() as stack:
        try:
            descriptor = _open(stack, str(allowed_folder), FOLDER_FLAGS)
            for part in parts:
                descriptor = _open(stack, part, FOLDER_FLAGS | os.O_NOFOLLOW, descriptor)
        except OSError:
            raise SourceFailed(UNAVAILABLE) from None
        yield descriptor


def _open(stack: ExitStack, name: str, flags: int, parent: int | None = None) -> int:
    descriptor = os.open(name, flags, dir_fd=parent)
    stack.callback(os.close, descriptor)
    return descriptor


def list_files(descriptor: int) -> FolderListing:
    listing = FolderListing(os.fstat(descriptor).st_dev)
    try:
        _list_folder(descriptor, "", listing)
    except OSError:
        raise SourceFailed(UNAVAILABLE) from None
    return listing


def _list_folder(descriptor: int, prefix: str, listing: FolderListing) -> None:
    with os.scandir(descriptor) as entries:
        for entry in entries:
            listing.entry_count += 1
            if listing.entry_count > MAX_ENTRIES:
                raise SourceFailed(f"The folder has more than {MAX_ENTRIES:,} files. Nothing was changed.")
            if entry.name.startswith("."):
                continue
            with suppress(FileNotFoundError):  # deleted in the meantime
                _list_entry(descriptor, prefix + entry.name, entry.stat(follow_symlinks=False), listing)


def _list_entry(parent: int, path: str, status: os.stat_result, listing: FolderListing) -> None:
    is_folder = stat.S_ISDIR(status.st_mode)
    try:
        doc_id = normalize_name(path, "doc_id")
    except InvalidName as error:
        # PostgreSQL cannot store bytes that are not UTF-8.
        printable_path = path.encode(errors="backslashreplace").decode()[:1000]
        listing.problems[printable_path + "/" * is_folder] = f"The path is not a valid document ID. {error.message}"
        return
    if is_folder:
        problem = _list_subfolder(parent, path, listing)
    elif not stat.S_ISREG(status.st_mode):
        problem = "Only files and folders are loaded. Symbolic links are not followed."
    elif doc_id in listing.files:
        problem = "Two files have this name."
    elif problem := _size_problem(status.st_size):
        pass
    elif (extension := file_extension(path)) and extension not in EXTENSIONS:
        problem = f"The extension .{extension[:40]} is not accepted."
    else:
        problem = ""
        times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
        listing.files[doc_id] = (path, f"{status.st_size}:{times}:{status.st_ino}")
    if problem:
        listing.problems[doc_id + "/" * is_folder] = problem


def _list_subfolder(parent: int, path: str, listing: FolderListing) -> str:
    """Lists a subfolder; returns a problem if it is not read."""
    with ExitStack() as stack:
        try:
            descriptor = _open(stack, path.rpartition("/")[2], FOLDER_FLAGS | os.O_NOFOLLOW, parent)
            if os.fstat(descriptor).st_dev != listing.device:
                return "The folder is on another device."
            _list_folder(descriptor, f"{path}/", listing)
        except PermissionError:
            return "The folder cannot be read."
    return ""


def read_file(folder: int, path: str, device: int) -> bytes:
    """The content of a file; raises SourceFailed if it cannot be read."""
    limit = settings.COLLECTIONS["file_limit"]
    *parents, name = path.split("/")
    with ExitStack() as stack:
        try:
            for part in parents:
                folder = _open(stack, part, FOLDER_FLAGS | os.O_NOFOLLOW, folder)
            file = stack.enter_context(os.fdopen(os.open(name, FILE_FLAGS, dir_fd=folder), "rb"))
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_dev != device:
                raise SourceFailed(READ_ERROR)
            content = file.read(limit + 1)
        except OSError:
            raise SourceFailed(READ_ERROR) from None
    if problem := _size_problem(len(content)):
        raise SourceFailed(problem)
    return content


def _size_problem(size: int) -> str:
    limit = settings.COLLECTIONS["file_limit"]
    return "The file is empty." if size == 0 else f"The file is larger than {limit // 1024**2} MB." * (size > limit)
