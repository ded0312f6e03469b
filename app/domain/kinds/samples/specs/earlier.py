"""Manifests that an earlier version has stored, in the form of this one.

An earlier version accepted empty values that upstream's CRDs forbid, and stored some of them as defaults. Most fields
of a SampleSet are immutable, so such an object could never be edited.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.domain.cache.naming import JUICEFS
from app.domain.plan import Manifest

# The value that an empty one stood for, by the object and the name of its field. None stands for no field.
_MEANINGS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "csi": {"driver": JUICEFS},
    "cache": {"levels": None},
    "levels": {"mediumType": None, "path": None},
    "warmupOptions": {"strategyName": "sequence"},
}


def without_empty_values(manifest: Manifest) -> Manifest:
    """Return a manifest of any shape with each of these empty values replaced."""
    return {**manifest, "spec": _replace(manifest["spec"], "spec")} if "spec" in manifest else manifest


def _replace(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_replace(item, name) for item in value] if name == "levels" else value
    if not isinstance(value, dict):
        return value
    meanings = _MEANINGS.get(name, {})
    found = {key: meanings[key] if key in meanings and _is_empty(item) else item for key, item in value.items()}
    return {key: _replace(item, key) if key in _MEANINGS else item for key, item in found.items() if item is not None}


def _is_empty(value: Any) -> bool:
    return isinstance(value, str | list) and not value
