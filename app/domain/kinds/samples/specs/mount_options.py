"""The mount options of JuiceFS: which ones users can set, and their form in a PersistentVolume.

Options that are not set are left out, so that the defaults of JuiceFS apply. The others are sorted by name, so that
the same set always has the same options.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field

from app.domain.errors import Problems, invalid_manifest, pointer_to, shorten
from app.domain.kinds.samples.specs.directories import (
    CACHE_DIR,
    DEFAULT_CACHE_DIR,
    check_directories,
    check_option_text,
    own_directory,
    split_paths,
)
from app.domain.kinds.samples.specs.paths import wrong_path
from app.domain.kinds.spec.model import SpecModel

CACHE_SIZE: Final = "cache-size"
# MiB. As large as the volume, so that only the free space of the disk limits the cache.
DEFAULT_CACHE_SIZE: Final = 10 * 1024**3
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


def mount_options(options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel], namespace: str, uid: str) -> str:
    """Return the text of the options in the PersistentVolume of the set with this uid. The spec must be accepted."""
    given = (options or JuiceFSMountOptions()).model_dump(by_alias=True, exclude_none=True)
    given[CACHE_DIR] = ":".join(cache_dirs(options, levels, namespace, uid))
    given[CACHE_SIZE] = _size(levels) or given.get(CACHE_SIZE, DEFAULT_CACHE_SIZE)
    emitted = {name: value for name, value in given.items() if value is not False and value != ""}
    return ",".join(name if value is True else f"{name}={value}" for name, value in sorted(emitted.items()))


def _size(levels: Sequence[CacheLevel]) -> int:
    """Return the MiB of the levels with a path. If no level has a path, all count for the default directory."""
    return sum(level.cache_size for level in [level for level in levels if level.path] or levels)


def cache_bases(options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel]) -> tuple[str, ...]:
    """Return the paths of the levels, or without any the directories of `cache-dir`, or the default one."""
    paths = [path for level in levels for path in split_paths(level.path)]
    return tuple(paths or split_paths(options.cache_dir if options else None) or [DEFAULT_CACHE_DIR])


def cache_dirs(
    options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel], namespace: str, uid: str
) -> tuple[str, ...]:
    """Return the directory of the set with this uid in each of its bases."""
    return tuple(own_directory(base, namespace, uid) for base in cache_bases(options, levels))


def given_directories(options: JuiceFSMountOptions | None, levels: Sequence[CacheLevel]) -> tuple[str, ...]:
    """Return the directories that a spec names, or the default one. With these as cache roots the spec is accepted."""
    given = [path for level in levels for path in split_paths(level.path)]
    given += split_paths(options.cache_dir if options else None)
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
    found = split_paths(parse_mount_options(text).get(CACHE_DIR))
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


def _check_ratio(text: str, pointer: str, problems: Problems) -> None:
    accepted = "a number from 0 to below 1, as 0.1"
    if len(text) > _MAX_RATIO or not _NUMBER.fullmatch(text):
        problems.add(pointer, "FreeSpaceRatioNotValid", f"parse free-space-ratio:{shorten(text)} error", accepted)
    elif not 0 <= Decimal(text) < 1:
        problems.add(pointer, "FreeSpaceRatioNotValid", f"free-space-ratio:{shorten(text)} is not valid", accepted)
