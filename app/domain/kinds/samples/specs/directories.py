"""The directories of nodes in which sets cache their data.

A manifest names bases, such as /mnt/disk1. In each base, a set has a directory of its own, whose path contains its
namespace and its uid: base/namespace/uid. A base contains no uid below the cache root, so no directory of a set is
inside that of another, whatever bases they name.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from app.domain.cache.limits import DEFAULT_CACHE_ROOTS
from app.domain.errors import Problems, shorten
from app.domain.kinds.samples.specs.paths import parts_of, wrong_path

CACHE_DIR: Final = "cache-dir"
DEFAULT_CACHE_DIR: Final = DEFAULT_CACHE_ROOTS[0]
# System directories. Clearing a cache deletes the content of its directory on the node as root.
_SYSTEM: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/dpkg",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/log",
    "/var/run",
    "/var/spool",
)
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def own_directory(base: str, namespace: str, uid: str) -> str:
    """Return the directory of the set with this uid in a base."""
    return f"{base.rstrip('/')}/{namespace}/{uid}"


def base_of(directory: str, namespace: str, uid: str) -> str | None:
    """Return the base of a directory of the set with this uid, or None if the directory is not the set's own."""
    own = own_directory("", namespace, uid)
    return directory.removesuffix(own) or "/" if directory.endswith(own) else None


def split_paths(listed: str | None) -> list[str]:
    """Return the paths of a colon-separated list, without empty components and dots."""
    return [_plain(path) for path in (listed or "").split(":") if path]


def _plain(path: str) -> str:
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    return f"/{plain}" if path.startswith("/") else plain


def check_option_text(value: str | None, pointer: str, problems: Problems) -> None:
    """Check text that becomes a mount option. A comma would start another option."""
    if value and ("," in value or " " in value or not value.isprintable()):
        detail = f'"{shorten(value)}" cannot be one mount option'
        problems.add(pointer, "MountOptionNotValid", detail, "text without commas and spaces")


def check_directories(listed: str, pointer: str, problems: Problems, roots: Sequence[str]) -> None:
    """Check the directories of a colon-separated list."""
    accepted = "an absolute path in one of " + ", ".join(roots)
    paths = split_paths(listed)
    if not paths:
        problems.add(pointer, "CacheDirNotValid", f"{CACHE_DIR} is not valid", accepted)
    for path in paths:
        if problems.full:
            return
        check_option_text(path, pointer, problems)
        if wrong := wrong_path(path) or _wrong_directory(path, roots):
            problems.add(pointer, "CacheDirNotValid", wrong, accepted)


def check_default_directory(pointer: str, problems: Problems, roots: Sequence[str]) -> None:
    """Check that the default directory is inside the cache roots, for a set that names no directory."""
    if _wrong_directory(DEFAULT_CACHE_DIR, roots):
        accepted = "cache.levels with a path, or csi.juiceFSMountOptions.cache-dir, in one of " + ", ".join(roots)
        detail = f"no cache directory is given, and the default {DEFAULT_CACHE_DIR} is not where caches may be"
        problems.add(pointer, "CacheDirNotValid", detail, accepted)


def check_distinct(paths: Iterable[str], pointer: str, problems: Problems) -> None:
    """Check that no directory contains another, which would be counted and cleared twice."""
    before: list[str] | None = None
    # In the order of components, a directory is followed at once by those inside it.
    for parts in sorted(path.split("/") for path in paths):
        if before is not None and parts[: len(before)] == before:
            detail = f'"{shorten("/".join(parts))}" is inside "{shorten("/".join(before))}", or the same'
            problems.add(pointer, "CacheDirNotValid", detail, "directories apart from one another")
            return
        before = parts


def _wrong_directory(path: str, roots: Sequence[str]) -> str | None:
    """Return what is wrong with a cache directory, or None."""
    shown = shorten(path)
    if not path.startswith("/"):
        return f'the cache directory "{shown}" is not absolute'
    if any(character in path for character in "*?[]\\\"'="):
        return f'the cache directory "{shown}" has a special character'
    around = [plain for root in roots if _is_in(path, plain := _plain(root))]
    if not around:
        return f'the cache directory "{shown}" is not where caches may be'
    # Below the root of an operator, a uid stands for a directory of one set.
    if all(any(map(_UID.fullmatch, parts_of(path)[len(parts_of(root)) :])) for root in around):
        return f'the cache directory "{shown}" is that of a set'
    # A root inside a system directory is the operator's consent to caches there.
    touched = [system for system in _SYSTEM if _is_in(path, system) or _is_in(system, path)]
    if all(any(not _is_in(root, system) for system in touched) for root in around):
        return f'the cache directory "{shown}" is, holds or is in a directory of the system'
    return None


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")
