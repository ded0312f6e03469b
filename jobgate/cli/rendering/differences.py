"""What a manifest would change, as `jobgate diff` shows it. Pure."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

_ABSENT: Final = object()
# Of the metadata, only these belong to what a user writes.
_METADATA: Final = ("labels", "annotations")


def manifest_of(item: Any) -> dict[str, Any]:
    """Return the manifest of a stored object, with defaults."""
    metadata = {"name": item.name, "labels": dict(item.labels), "annotations": dict(item.annotations)}
    return {"apiVersion": item.api_version, "kind": item.kind, "metadata": metadata, "spec": dict(item.spec)}


def comparable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two manifests are compared by: what PUT stores. A status in a file is ignored."""
    metadata = manifest.get("metadata") or {}
    kept = {"name": metadata.get("name"), **{name: dict(metadata.get(name) or {}) for name in _METADATA}}
    return {**{name: manifest.get(name) for name in ("apiVersion", "kind")}, "metadata": kept, **_rest(manifest)}


def _rest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in manifest.items()
        if name not in {"apiVersion", "kind", "metadata", "status", "nativeStatus"}
    }


def difference(old: Mapping[str, Any], new: Mapping[str, Any], source: str) -> str:
    """Return a unified diff of two manifests as YAML, or an empty text if PUT would change nothing."""
    before, after = (_lines(comparable(document)) for document in (old, new))
    return "\n".join(difflib.unified_diff(before, after, "the gateway", source, lineterm=""))


def _lines(manifest: Mapping[str, Any]) -> list[str]:
    return msgspec.yaml.encode(manifest, order="sorted").decode().splitlines()


def refused_changes(old: Mapping[str, Any], new: Mapping[str, Any], editable: Sequence[str]) -> list[str]:
    """Return pointers to the changes that PUT refuses, because their fields cannot change."""
    patterns = [pattern.split("/")[1:] for pattern in editable]
    return [
        "/" + "/".join(path)
        for path in _changes(comparable(old), comparable(new), ())
        if not any(_covers(pattern, path) for pattern in patterns)
    ]


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            yield from _changes(old.get(name, _ABSENT), new.get(name, _ABSENT), (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*path, str(index)))
    elif old != new:
        yield path


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return len(pattern) <= len(path) and all(name in {"*", part} for name, part in zip(pattern, path, strict=False))
