"""Reads a List of manifests, as kubectl accepts and exports it: apiVersion v1, kind List, items."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.plan import Manifest
from app.domain.suggestions import add_unknown_field

MAX_ITEMS: Final = 100
LIST_KIND: Final = "List"
_LIST_VERSION: Final = "v1"
_LIST_FIELDS: Final = ("apiVersion", "kind", "metadata", "items")


def is_list(document: Manifest) -> bool:
    return document.get("kind") == LIST_KIND


def items_of(document: Manifest) -> list[Manifest]:
    """Return the manifests of a List.

    Raises:
        InvalidManifest: the List is not valid, or it contains another List.
    """
    problems = Problems()
    version = document.get("apiVersion")
    if version != _LIST_VERSION:
        detail = f'"{shorten(version)}": a List has another version' if isinstance(version, str) else "it is required"
        problems.add("/apiVersion", "UnknownKind", detail, _LIST_VERSION)
    for name in document:
        if name not in _LIST_FIELDS:
            add_unknown_field(problems, pointer_to("", name), name, _LIST_FIELDS)
    items = document.get("items")
    if not isinstance(items, list) or not items:
        problems.add("/items", "Required", "a List holds manifests", f"1 to {MAX_ITEMS} manifests")
    elif len(items) > MAX_ITEMS:
        problems.add("/items", "TooManyItems", f"there are {len(items)} items", f"{MAX_ITEMS} or fewer")
    problems.raise_if_any("the List is not valid")
    assert isinstance(items, list), "checked above"
    return check_items(items)


def check_items(items: Sequence[Any]) -> list[Manifest]:
    """Return the items as manifests.

    Raises:
        InvalidManifest: items are no objects, or are Lists; the error names them all.
    """
    problems, manifests = Problems(), []
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            problems.add(f"/items/{index}", "InvalidType", "the manifest is not an object", "an object")
        elif item.get("kind") == LIST_KIND:
            problems.add(f"/items/{index}/kind", "NestedList", "a List cannot contain another List", "a manifest")
        else:
            manifests.append(dict(item))
    problems.raise_if_any("the manifests cannot be read")
    return manifests
