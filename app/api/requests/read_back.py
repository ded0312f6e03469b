"""Converts the whole view of an object, as GET returns it, back to the manifest that PUT accepts."""

from collections.abc import Collection
from typing import Any, Final

_KEPT: Final = ("apiVersion", "kind", "spec")
_METADATA: Final = ("name", "namespace", "labels", "annotations")


def is_view(document: dict[str, Any]) -> bool:
    """Return whether the document is a whole view, which has its name beside the spec and no `metadata`."""
    return "metadata" not in document and "name" in document and "spec" in document


def manifest_of(view: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Return the manifest of a whole view. The other `fields` of a view are read-only, and are ignored.

    A field that no view has stays, so that it is refused like any unknown field.
    """
    # A view has empty labels and annotations if the manifest has none.
    metadata = {name: view[name] for name in _METADATA if view.get(name) not in (None, {})}
    read_only = {*fields, *_METADATA}.difference(_KEPT)
    return {"metadata": metadata} | {name: value for name, value in view.items() if name not in read_only}
