"""Compares two accepted manifests: which changes are not allowed, and whether a new generation is needed."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from app.domain.errors import FieldError, pointer_to
from app.domain.plan import Manifest

# The comparison of two manifests that have nothing in common stops early.
_MAX_CHANGES = 50


def immutable_changes(stored: Manifest, new: Manifest, mutable: Sequence[str]) -> Sequence[FieldError]:
    """Return an error for each difference outside the mutable pointers, in which * stands for any one step."""
    changes: list[FieldError] = []
    for pointer in _differences(stored, new, ""):
        if any(_is_within(pointer, allowed) for allowed in mutable):
            continue
        accepted = "changes to " + ", ".join(mutable)
        changes.append(
            FieldError(pointer=pointer, code="Immutable", detail="the field is immutable", accepted=accepted)
        )
        if len(changes) == _MAX_CHANGES:
            break
    return changes


def is_respecified(stored: Manifest, new: Manifest) -> bool:
    """Return whether two accepted manifests differ outside their metadata, so that the generation increases.

    Python regards True, 1 and 1.0 as equal, but JSON does not. Therefore equal values are also compared as JSON.
    """
    before, after = _without_metadata(stored), _without_metadata(new)
    return before != after or _json(before) != _json(after)


def _without_metadata(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name != "metadata"}


def _json(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest, order="deterministic")


def _is_within(pointer: str, allowed: str) -> bool:
    steps, of_allowed = pointer.split("/"), allowed.split("/")
    return len(steps) >= len(of_allowed) and all(
        step == of for step, of in zip(steps, of_allowed, strict=False) if of != "*"
    )


def _differences(old: Any, new: Any, pointer: str) -> Iterator[str]:
    if type(old) is type(new) and old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _differences(old.get(key), new.get(key), pointer_to(pointer, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, pointer_to(pointer, index))
    else:
        yield pointer
