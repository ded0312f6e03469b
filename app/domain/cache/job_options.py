"""The option files that the controller posts to a SampleSet's runtime servers: sync, warmup, rmr and clear."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.domain.cache.manifests.stateful_set import cache_mounts_of
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.values import CacheSite, SecretValues, SetIdentity, StorageKeys, storage_keys_of
from app.domain.cache.vocabulary import JobType
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.samples.specs.directories import base_of
from app.domain.kinds.samples.specs.paths import check_relative, inside, parts_of, wrong_path
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec, SyncOptions, WarmupOptions, check_rmr, check_sync
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kinds.samples.specs.sources import require_source, with_keys

_EVERYTHING: Final = "/*"
_SPEC: Final = "/spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of one job. `values` are safe to show; only the option file contains the keys of a sync's source.

    `permissions` is what the installation permits the server to reach for this job.
    """

    type: JobType
    values: Mapping[str, Any]
    keys: StorageKeys | None = None
    permissions: Mapping[str, Any] = field(default_factory=dict)

    def option_file(self) -> dict[str, Any]:
        """Return the option file for the runtime servers. It may contain keys, so it must not be shown or stored."""
        return {**self._desired_options(), **self.permissions}

    def _desired_options(self) -> dict[str, Any]:
        if self.keys is None:
            return dict(self.values)
        return {**self.values, "source": with_keys(self.values["source"], self.keys)}

    def digest(self, key: bytes) -> str:
        """Return an HMAC of the options and keys under the installation's key.

        It shows whether these have changed. A changed permission does not repeat a job. Without the installation's key
        it reveals nothing.
        """
        # Sorted and compact, so that equal options always give the same digest.
        text = json.dumps([self.type, self._desired_options()], sort_keys=True, separators=(",", ":"))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def sync_options(
    identity: SetIdentity,
    spec: SampleSetSpec,
    job: SampleJobSpec | None,
    secret: SecretValues | None,
    site: CacheSite,
) -> JobOptions:
    """Return the options of a sync job, or without a job those of the set's own first sync.

    The source is that of the job, or that of the set if the job names none. `secret` holds the keys of the source.

    Raises:
        InvalidManifest: the source or the destination is not valid; the messages are upstream's.
    """
    options = (job.sync_options if job else None) or SyncOptions()
    source = options.source or spec.source_uri
    pointer = pointer_to(_SPEC, "syncOptions", "source") if options.source else pointer_to(_SPEC, "source", "uri")
    keys = storage_keys_of(secret) if secret else None
    require_source(source, pointer, site.sources)
    problems = Problems()
    check_sync(options, pointer_to(_SPEC, "syncOptions"), problems, site.sources)
    problems.raise_if_any("the options of the sync job are not valid")
    source, destination = _align_ends(source, options.destination, site.data_dir(identity.name))
    flags = options.model_dump(by_alias=True, exclude_none=True, exclude={"source", "destination"})
    # JuiceFS would take keys in a file:// URI for a part of the path.
    kept = None if source.startswith("file://") else keys
    values = {"source": source, "destination": destination, **flags}
    return JobOptions(type=JobType.SYNC, values=values, keys=kept, permissions=_permissions(site.sources))


def _permissions(sources: SourceLimits) -> dict[str, Any]:
    """Return what a server may reach for a sync, besides hosts of the internet. The server checks it."""
    permitted = {"allowed-hosts": sources.hosts, "allowed-directories": sources.directories}
    return {name: list(listed) for name, listed in permitted.items() if listed}


def _align_ends(source: str, relative: str, data_dir: str) -> tuple[str, str]:
    """Return source and destination URI, either both or none with a slash at the end.

    JuiceFS takes an end without a slash as a prefix of names. With the mount S as the destination, it would write the
    files of the source's sibling train2 to S2, outside the mount. So the mount itself always gets a slash.
    """
    destination = "file://" + inside(data_dir, relative)
    if relative.endswith("/") or not parts_of(relative):
        destination += "/"
    if source.endswith("/") != destination.endswith("/"):
        return source.rstrip("/") + "/", destination.rstrip("/") + "/"
    return source, destination


def warmup_options(identity: SetIdentity, spec: SampleSetSpec, job: SampleJobSpec, site: CacheSite) -> JobOptions:
    """Return the options of a warmup job; without paths it warms up the whole volume.

    Raises:
        InvalidManifest: a path is not inside the volume.
    """
    options, data_dir = job.warmup_options or WarmupOptions(), site.data_dir(identity.name)
    problems = Problems()
    base = pointer_to(_SPEC, "warmupOptions")
    # An empty path is the volume itself.
    paths = options.paths or [""]
    for index, path in enumerate(paths):
        check_relative(path, pointer_to(base, "paths", index), problems)
    if options.file:
        check_relative(options.file, pointer_to(base, "file"), problems, may_be_whole=False)
    problems.raise_if_any("the options of the warmup job are not valid")
    values: dict[str, Any] = {
        "paths": [inside(data_dir, path) for path in paths],
        "partitions": spec.partitions,
        "strategyName": options.strategy_name or "sequence",
    }
    if options.file:
        values["file"] = inside(data_dir, options.file)
    if options.threads is not None:
        values["threads"] = options.threads
    return JobOptions(type=JobType.WARMUP, values=values)


def rmr_options(identity: SetIdentity, job: SampleJobSpec, site: CacheSite) -> JobOptions:
    """Return the options of an rmr job.

    Raises:
        InvalidManifest: there are no paths, or a path is the whole volume or not inside it.
    """
    problems = Problems()
    check_rmr(job.rmr_options, pointer_to(_SPEC, "rmrOptions"), problems)
    problems.raise_if_any("the options of the rmr job are not valid")
    paths = job.rmr_options.paths if job.rmr_options else None
    assert paths, "check_rmr reports missing options and paths"
    data_dir = site.data_dir(identity.name)
    return JobOptions(type=JobType.RMR, values={"paths": [inside(data_dir, path) for path in paths]})


def clear_options(identity: SetIdentity, job: SampleJobSpec, stateful_set: Mapping[str, Any]) -> JobOptions:
    """Return the options of a clear job, with paths in the container; without paths it clears all cache directories.

    On the node, a path may be in a directory of the set, or in the base that the manifest of the set names.

    Raises:
        InvalidManifest: a path is in none of the cache directories.
    """
    mounts = cache_mounts_of(stateful_set)
    known = [
        (directory, mount)
        for host, mount in mounts
        for directory in (host, base_of(host, identity.namespace, identity.uid), mount)
        if directory is not None
    ]
    paths = (job.clear_options.paths if job.clear_options else None) or []
    if not paths:
        return JobOptions(type=JobType.CLEAR, values={"paths": [mount + _EVERYTHING for _, mount in mounts]})
    problems = Problems()
    base = pointer_to(_SPEC, "clearOptions", "paths")
    translated = [_translate_path(path, known, pointer_to(base, index), problems) for index, path in enumerate(paths)]
    problems.raise_if_any("the options of the clear job are not valid")
    return JobOptions(type=JobType.CLEAR, values={"paths": translated})


def _translate_path(path: str, known: Sequence[tuple[str, str]], pointer: str, problems: Problems) -> str:
    """Translate a path in one of the known directories into the path in the container where it is mounted."""
    accepted = "a path in one of " + ", ".join(directory for directory, _ in known)
    if wrong := wrong_path(path):
        problems.add(pointer, "PathNotValid", wrong, accepted)
        return ""
    parts = parts_of(path.removesuffix(_EVERYTHING))
    everything = path.endswith(_EVERYTHING)
    for directory, mount in known:
        base = parts_of(directory)
        # Components are compared and not text: /data/cache2 is not in /data/cache.
        if path.startswith("/") and parts[: len(base)] == base:
            # Only the content of a cache directory can be removed: the directory itself is a mount point.
            whole = everything or len(parts) == len(base)
            return inside(mount, "/".join(parts[len(base) :])) + (_EVERYTHING if whole else "")
    detail = f"given path {shorten(path)} is not valid, it should in host path or mount path"
    problems.add(pointer, "ClearPathNotValid", detail, accepted)
    return ""
