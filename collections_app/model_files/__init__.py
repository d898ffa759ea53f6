"""Makes the files of the local models from the packages that contain them, once, and removes what is not needed.

    package with the original files ── checked and converted ──▶ package/converted/; the rest is removed

`./run` and the Dockerfile convert after the installation (`python -m collections_app.model_files`); otherwise the first
process that uses a model does. The files are mapped into memory, so all processes share them.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

FOLDER_NAME = "converted"


class ModelFilesMissing(Exception):
    """The files of a model are missing and cannot be made. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPackage:
    """A package with the original files of a model; `convert` reads its folder and fills another."""

    distribution: str
    folder_name: str
    # The paths of the original files, and their SHA-256.
    hashes: dict[str, str]
    convert: Callable[[Path, Path], None]

    def find_folder(self) -> Path:
        try:
            return Path(str(metadata.distribution(self.distribution).locate_file(self.folder_name)))
        except metadata.PackageNotFoundError:
            raise ModelFilesMissing(f"The package {self.distribution} is not installed.") from None


def prepare_files(package: ModelPackage) -> Path:
    """Returns the folder with the converted files, which are made if they are missing."""
    folder = package.find_folder()
    target = folder / FOLDER_NAME
    if target.is_dir():
        return target
    try:
        with (folder.parent / f".{package.folder_name}.lock").open("w") as lock_file:
            fcntl.flock(lock_file, fcntl.LOCK_EX)
            if not target.is_dir():  # another process may have made them in the meantime
                _convert(package, folder, target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelFilesMissing(
            f"The files of {package.distribution} cannot be converted ({reason}). As the owner of the packages, run: "
            "python -m collections_app.model_files"
        ) from None
    return target


def _convert(package: ModelPackage, folder: Path, target: Path) -> None:
    for name, expected_hash in package.hashes.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected_hash:
                raise ModelFilesMissing(f"{name} in {package.distribution} is not the expected file.")
    unfinished_target = folder / f"{FOLDER_NAME}.unfinished"
    shutil.rmtree(unfinished_target, ignore_errors=True)  # of a process that was killed
    unfinished_target.mkdir()
    package.convert(folder, unfinished_target)
    unfinished_target.rename(target)
    # The package is never imported. Its licence is in another folder, and stays.
    for path in folder.iterdir():
        if path.is_dir() and path != target:
            shutil.rmtree(path)
        elif path != target:
            path.unlink()
