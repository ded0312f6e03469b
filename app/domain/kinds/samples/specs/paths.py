"""Checks of paths in manifests. They compare text only; the runtime servers check symbolic links."""

from collections.abc import Sequence
from typing import Final

from app.domain.errors import Problems, pointer_to, shorten

RELATIVE: Final = "a path relative to the mount, without .."
# Code, detail and what is accepted, of a list without elements.
EMPTY_LIST: Final = ("TooShort", "must not be empty", "at least 1")
# PATH_MAX of Linux.
_MAX_BYTES: Final = 4096


def parts_of(path: str) -> list[str]:
    """Return the components of a path without empty ones and dots."""
    return [part for part in path.split("/") if part not in ("", ".")]


def wrong_path(path: str) -> str | None:
    """Return what is wrong with a path in any use, or None."""
    if not path.isprintable():
        return "the path has characters that cannot be printed"
    if len(path.encode("utf-8", "surrogatepass")) > _MAX_BYTES:
        return f"the path has more than {_MAX_BYTES} bytes"
    if ".." in path.split("/"):
        return f'the path "{shorten(path)}" has a .., which could leave the mount'
    return None


def inside(base: str, relative: str) -> str:
    """Join a checked path to `base`; an empty path is `base` itself."""
    return "/".join([base, *parts_of(relative)])


def check_relative(path: str, pointer: str, problems: Problems, *, may_be_whole: bool = True) -> None:
    """Check a path relative to the mount. The mount itself is accepted only if the path `may_be_whole`."""
    if wrong := wrong_path(path):
        problems.add(pointer, "PathNotValid", wrong, RELATIVE)
    elif not may_be_whole and not parts_of(path):
        problems.add(pointer, "WholeVolume", "the path is the whole volume", "a path inside the volume")


def check_all_relative(paths: Sequence[str], pointer: str, problems: Problems, *, may_be_whole: bool = True) -> None:
    """Check a list of paths relative to the mount."""
    for index, path in enumerate(paths):
        if problems.full:
            return
        check_relative(path, pointer_to(pointer, index), problems, may_be_whole=may_be_whole)
