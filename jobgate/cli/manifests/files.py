"""Reads the manifests of `-f`: files, directories, and standard input."""

import codecs
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from jobgate.cli.manifests.documents import SUFFIXES, Document, ManifestError, documents, own, with_changes
from jobgate.cli.printing import report
from jobgate.cli.targets import KNOWN_KINDS

STDIN: Final = "-"
_STDIN_NAME: Final = "standard input"
_MAX_BYTES: Final = 256 << 20  # of a file; no gateway accepts as much, and /dev/zero has no end


def read(
    files: Sequence[str],
    *,
    name: str | None = None,
    settings: Sequence[str] = (),
    select: Callable[[list[Document]], list[Document]] = lambda found: found,
) -> list[Document]:
    """Return the manifests of files, of the files of directories, and of standard input for `-`.

    `select` chooses among them. Each has the values of `--set`; `name` is for a single one.

    Raises:
        ManifestError: a file cannot be read, there is no manifest, or an option does not fit.
    """
    if not files:
        raise ManifestError("there is no file; accepted: -f FILE, -f DIRECTORY or -f -")
    found = [document for file in files for source, text in _texts(file) for document in documents(source, text)]
    if not found:
        names = [_STDIN_NAME if file == STDIN else file for file in files]
        raise ManifestError(f"there is no manifest in {', '.join(names)}")
    found = select(found)
    if name is not None and len(found) > 1:
        raise ManifestError(f"--name {name}: there are {len(found)} manifests; accepted: one")
    return [with_changes(document, name, settings) for document in found]


def own_documents(kinds: Callable[[], Collection[str]], *, skips: bool) -> Callable[[list[Document]], list[Document]]:
    """Return the choice of the documents that a gateway with these kinds has, for `read`.

    `kinds` is called only if there is a kind that this client does not know. Skipped documents are reported.
    """

    def select(found: list[Document]) -> list[Document]:
        known: Collection[str] = KNOWN_KINDS
        if (len(found) > 1 or skips) and any(document.kind not in known for document in found):
            known = {*kinds(), *KNOWN_KINDS}
        mine, foreign = own(found, known, skips=skips)
        for document in foreign:
            report(f"{document.source}: {document.shown} is skipped")
        if not mine:
            raise ManifestError("there is no manifest of a kind of jobgate")
        return mine

    return select


def _texts(file: str) -> list[tuple[str, str]]:
    if file == STDIN:
        return [(_STDIN_NAME, read_text("-f", file))]
    if "://" in file:
        raise ManifestError(f"-f {file}: addresses are not read; accepted: curl -fsS {file} | jobgate submit -f -")
    path = Path(file)
    try:
        paths = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES) if path.is_dir() else [path]
    except OSError as error:
        raise ManifestError(f"-f {file}: {error.strerror}") from None
    return [(str(file), read_text("-f", str(file))) for file in paths]


def read_text(option: str, file: str) -> str:
    """Return the text of the file of an option; `-` is standard input.

    Raises:
        ManifestError: it cannot be read, is no text, or is too large.
    """
    if file == STDIN:
        return _decode(_STDIN_NAME, sys.stdin.buffer.read(_MAX_BYTES + 1))
    try:
        with Path(file).open("rb") as opened:
            return _decode(f"{option} {file}", opened.read(_MAX_BYTES + 1))
    except OSError as error:
        raise ManifestError(f"{option} {file}: {error.strerror}") from None


def _decode(source: str, content: bytes) -> str:
    """Return the text of a file. As in kubectl, it is UTF-8, or UTF-16 with a byte order mark, as Windows writes it."""
    if len(content) > _MAX_BYTES:
        raise ManifestError(f"{source}: it is too large; accepted: up to {_MAX_BYTES >> 20} MiB")
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"{source}: byte {error.start + 1} is not text; accepted: UTF-8, or UTF-16 with a byte order mark"
        ) from None
