"""The mount options of JuiceFS: which ones users can set, and their form in a PersistentVolume.

Options that are not set are left out, so that the defaults of JuiceFS apply. The others are sorted by name, so that
the same set always has the same options.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field

from app.domain.cache.specs.limits import DEFAULT_CACHE_ROOTS
from app.domain.cache.specs.paths import wrong_path
from app.domain.dialects.spec_model import SpecModel
from app.domain.errors import Problems, invalid_manifest, pointer_to, shorten

CACHE_DIR: Final = "cache-dir"
CACHE_SIZE: Final = "cache-size"
DEFAULT_CACHE_DIR: Final = DEFAULT_CACHE_ROOTS[0]
# MiB. As large as the volume, so that only the free space of the disk limits the cache.
DEFAULT_CACHE_SIZE: Final = 10 * 1024**3
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
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_MAX_RATIO: Final = 64  # characters; longer text is no sensible ratio and slow to parse

FlagNumber: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
# MiB; the number of bytes must fit into 63 bits.
Mebibytes: TypeAlias = Annotated[int, Field(ge=0, le=2**43 - 1)]


class JuiceFSMountOptions(SpecModel):
    """Mount options under the names of JuiceFS. Zero and false are values that override a default."""

    model_config = ConfigDict(populate_by_name=True, alias_generator=lambda name: name.replace("_", "-"))

    metrics: str | None = None
    """The address at which the mount serves its metrics."""
    attr_cache: FlagNumber | None = None
    """Seconds for which the kernel caches attributes."""
    entry_cache: FlagNumber | None = None
    """Seconds for which the kernel caches entries of files."""
    dir_entry_cache: FlagNumber | None = None
    """Seconds for which the kernel caches entries of directories."""
    enable_xattr: bool | None = None
    """Enable extended attributes."""
    get_timeout: FlagNumber | None = None
    """Seconds after which a download of an object ends."""
    put_timeout: FlagNumber | None = None
    """Seconds after which an upload of an object ends."""
    io_retries: FlagNumber | None = None
    """The number of retries after network errors."""
    max_uploads: FlagNumber | None = None
    """The number of concurrent uploads."""
    buffer_size: FlagNumber | None = None
    """MiB of the buffer for reads and writes."""
    prefetch: FlagNumber | None = None
    """The number of blocks that are read ahead concurrently."""
    writeback: bool | None = None
    """Upload objects in the background."""
    cache_dir: str | None = None
    """Directories on the node, separated by colons. The set gets a subdirectory in each."""
    cache_size: Mebibytes | None = None
    """MiB of the cache."""
    free_space_ratio: str | None = None
    """The share of the disk that the cache leaves free."""
    cache_partial_only: bool | None = None
    """Cache only blocks that are read in part."""
    open_cache: FlagNumber | None = None
    """Seconds for which the mount caches the attributes of open files."""
    sub_dir: str | None = None
    """The directory of the volume that is mounted."""


class CacheLevel(SpecModel):
    """One level of the cache."""

    medium_type: str | None = Field(default=None, json_schema_extra={"enum": ["MEM", "SSD", "HDD"]})
    """MEM, SSD or HDD; it has no effect."""
    path: str | None = Field(default=None, json_schema_extra={"minLength": 1})
    """Directories on the node, separated by colons."""
    cache_size: Mebibytes = 0
    """MiB, the sum over all of its paths."""


def mount_options(
    options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel], namespace: str, set_name: str
) -> str:
    """Return the text of the options in a PersistentVolume. The spec must have been accepted."""
    given = (options or JuiceFSMountOptions()).model_dump(by_alias=True, exclude_none=True)
    given[CACHE_DIR] = ":".join(cache_dirs(options, levels, namespace, set_name))
    given[CACHE_SIZE] = _size(levels) or given.get(CACHE_SIZE, DEFAULT_CACHE_SIZE)
    emitted = {name: value for name, value in given.items() if value is not False and value != ""}
    return ",".join(name if value is True else f"{name}={value}" for name, value in sorted(emitted.items()))


def _size(levels: Sequence[CacheLevel]) -> int:
    """Return the MiB of the levels with a path. If no level has a path, all count for the default directory."""
    return sum(level.cache_size for level in [level for level in levels if level.path] or levels)


def cache_dirs(
    options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel], namespace: str, set_name: str
) -> tuple[str, ...]:
    """Return the paths of the levels, or without any a subdirectory of this set in each directory of `cache-dir`."""
    paths = [path for level in levels for path in _split(level.path)]
    if paths:
        return tuple(paths)
    given = _split(options.cache_dir if options else None) or [DEFAULT_CACHE_DIR]
    return tuple(f"{base}/{namespace}/{set_name}" for base in given)


def given_directories(options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel]) -> tuple[str, ...]:
    """Return the directories that a spec names, or the default one. With these as cache roots the spec is accepted."""
    given = [path for level in levels for path in _split(level.path)]
    given += _split(options.cache_dir if options else None)
    return tuple(given or [DEFAULT_CACHE_DIR])


def parse_mount_options(text: str) -> Mapping[str, str | None]:
    """Parse the options into a mapping. An option without = has the value None."""
    found: dict[str, str | None] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        found[name] = value if equals else None
    return found


def cache_dirs_of(persistent_volume: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cache directories in the mount options of a PersistentVolume.

    Raises:
        InvalidManifest: it has none.
    """
    name = persistent_volume["metadata"]["name"]
    attributes = ((persistent_volume.get("spec") or {}).get("csi") or {}).get("volumeAttributes")
    if not attributes:
        raise invalid_manifest("PersistentVolumeNotValid", f"pv csi field {name} is not valid")
    if not (text := attributes.get("mountOptions")):
        raise invalid_manifest("MountOptionsMissing", f"pv mountOptions {name} is not exist")
    found = _split(parse_mount_options(text).get(CACHE_DIR))
    if not found:
        raise invalid_manifest("CacheDirNotValid", f"{CACHE_DIR} is not valid")
    return tuple(found)


def check_mount_options(options: JuiceFSMountOptions, pointer: str, problems: Problems, roots: Sequence[str]) -> None:
    """Report every violated rule of the mount options."""
    for name in ("metrics", "sub_dir"):
        check_option_text(getattr(options, name), pointer_to(pointer, name.replace("_", "-")), problems)
    if options.free_space_ratio:
        _check_ratio(options.free_space_ratio, pointer_to(pointer, "free-space-ratio"), problems)
    if options.cache_dir is not None:
        check_directories(options.cache_dir, pointer_to(pointer, CACHE_DIR), problems, roots)
    if options.sub_dir and (wrong := wrong_path(options.sub_dir)):
        problems.add(pointer_to(pointer, "sub-dir"), "PathNotValid", wrong, "a directory of the volume, without ..")


def check_option_text(value: str | None, pointer: str, problems: Problems) -> None:
    """Check text that becomes a mount option. A comma would start another option."""
    if value and ("," in value or " " in value or not value.isprintable()):
        detail = f'"{shorten(value)}" cannot be one mount option'
        problems.add(pointer, "MountOptionNotValid", detail, "text without commas and spaces")


def check_directories(listed: str, pointer: str, problems: Problems, roots: Sequence[str]) -> None:
    """Check the directories of a colon-separated list."""
    accepted = "an absolute path in one of " + ", ".join(roots)
    paths = _split(listed)
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


def _split(listed: str | None) -> list[str]:
    """Return the paths of a colon-separated list, without empty components and dots."""
    return [_plain(path) for path in (listed or "").split(":") if path]


def _plain(path: str) -> str:
    plain = "/".join(part for part in path.split("/") if part not in ("", "."))
    return f"/{plain}" if path.startswith("/") else plain


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
    # A root inside a system directory is the operator's consent to caches there.
    touched = [system for system in _SYSTEM if _is_in(path, system) or _is_in(system, path)]
    if all(any(not _is_in(root, system) for system in touched) for root in around):
        return f'the cache directory "{shown}" is, holds or is in a directory of the system'
    return None


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _check_ratio(text: str, pointer: str, problems: Problems) -> None:
    accepted = "a number from 0 to below 1, as 0.1"
    if len(text) > _MAX_RATIO or not _NUMBER.fullmatch(text):
        problems.add(pointer, "FreeSpaceRatioNotValid", f"parse free-space-ratio:{shorten(text)} error", accepted)
    elif not 0 <= Decimal(text) < 1:
        problems.add(pointer, "FreeSpaceRatioNotValid", f"free-space-ratio:{shorten(text)} is not valid", accepted)
