"""What a set's runtime servers are told to do: the option files of sync, warmup, rmr and clear."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.domain.cache.paths import check_relative, inside, parts_of, wrong_path
from app.domain.cache.runtime import cache_mounts_of
from app.domain.cache.sample_job import (
    ClearOptions,
    JobType,
    RmrOptions,
    SyncOptions,
    WarmupOptions,
    check_rmr,
)
from app.domain.cache.sources import require_source, with_credentials
from app.domain.cache.values import Credentials
from app.domain.errors import Problems, pointer_to, shorten

_EVERYTHING: Final = "/*"
_SPEC: Final = "/spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """`values` are safe to show; a sync's source has its keys only in the option file."""

    type: JobType
    values: Mapping[str, Any]
    credentials: Credentials | None = None

    def option_file(self) -> dict[str, Any]:
        """What is posted to the runtime servers, and shown to nobody else."""
        if self.credentials is None:
            return dict(self.values)
        return {**self.values, "source": with_credentials(self.values["source"], self.credentials)}

    def digest(self, key: bytes) -> str:
        """Tells whether options, keys included, have changed, to those alone who have the installation's key."""
        text = json.dumps([self.type, self.option_file()], sort_keys=True, separators=(",", ":"))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def sync_options(
    options: SyncOptions | None, set_source: str | None, credentials: Credentials | None, data_dir: str
) -> JobOptions:
    """Raises InvalidManifest, in upstream's words; the source is the job's, else the set's."""
    given = options or SyncOptions()
    source = given.source or set_source or ""
    place = pointer_to(_SPEC, "syncOptions", "source") if given.source else pointer_to(_SPEC, "source", "uri")
    require_source(source, place)
    problems = Problems()
    check_relative(given.destination, pointer_to(_SPEC, "syncOptions", "destination"), problems)
    problems.raise_if_any("the options of the sync job are not valid")
    destination = "file://" + inside(data_dir, given.destination)
    # Without a slash both ends are prefixes of names: what is in train2 would go beside the mount, to S2.
    if given.destination.endswith("/") or not parts_of(given.destination):
        destination += "/"
    if source.endswith("/") != destination.endswith("/"):
        source, destination = source.rstrip("/") + "/", destination.rstrip("/") + "/"
    flags = given.model_dump(by_alias=True, exclude_none=True, exclude={"source", "destination"})
    kept = None if source.startswith("file://") else credentials
    return JobOptions(
        type=JobType.SYNC, values={"source": source, "destination": destination, **flags}, credentials=kept
    )


def warmup_options(options: WarmupOptions | None, partitions: int, data_dir: str) -> JobOptions:
    given = options or WarmupOptions()
    problems = Problems()
    base = pointer_to(_SPEC, "warmupOptions")
    paths = given.paths or [""]
    for index, path in enumerate(paths):
        check_relative(path, pointer_to(base, "paths", index), problems)
    if given.file:
        check_relative(given.file, pointer_to(base, "file"), problems, may_be_whole=False)
    problems.raise_if_any("the options of the warmup job are not valid")
    values: dict[str, Any] = {
        "paths": [inside(data_dir, path) for path in paths],
        "partitions": partitions,
        "strategyName": given.strategy_name or "sequence",
    }
    if given.file:
        values["file"] = inside(data_dir, given.file)
    if given.threads is not None:
        values["threads"] = given.threads
    return JobOptions(type=JobType.WARMUP, values=values)


def rmr_options(options: RmrOptions | None, data_dir: str) -> JobOptions:
    problems = Problems()
    check_rmr(options, pointer_to(_SPEC, "rmrOptions"), problems)
    problems.raise_if_any("the options of the rmr job are not valid")
    assert options is not None, "without options there was a problem"
    return JobOptions(type=JobType.RMR, values={"paths": [inside(data_dir, path) for path in options.paths]})


def clear_options(options: ClearOptions | None, stateful_set: Mapping[str, Any]) -> JobOptions:
    """Paths as mounted, whichever way they were given; none: everything that is cached."""
    mounts = cache_mounts_of(stateful_set)
    given = (options.paths if options else None) or []
    if not given:
        return JobOptions(type=JobType.CLEAR, values={"paths": [mount + _EVERYTHING for _, mount in mounts]})
    problems = Problems()
    base = pointer_to(_SPEC, "clearOptions", "paths")
    translated = [_translated(path, mounts, pointer_to(base, index), problems) for index, path in enumerate(given)]
    problems.raise_if_any("the options of the clear job are not valid")
    return JobOptions(type=JobType.CLEAR, values={"paths": translated})


def _translated(path: str, mounts: Sequence[tuple[str, str]], pointer: str, problems: Problems) -> str:
    accepted = "a path in one of " + ", ".join(place for pair in mounts for place in pair)
    if wrong := wrong_path(path):
        problems.add(pointer, "PathNotValid", wrong, accepted)
        return ""
    parts = parts_of(path.removesuffix(_EVERYTHING))
    everything = path.endswith(_EVERYTHING)
    for host, mount in mounts:
        for place in (host, mount):
            base = parts_of(place)
            if path.startswith("/") and parts[: len(base)] == base:
                whole = everything or len(parts) == len(base)
                return inside(mount, "/".join(parts[len(base) :])) + (_EVERYTHING if whole else "")
    detail = f"given path {shorten(path)} is not valid, it should in host path or mount path"
    problems.add(pointer, "ClearPathNotValid", detail, accepted)
    return ""
