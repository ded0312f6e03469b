"""Lists of manifests."""

from typing import Any

import pytest

from app.domain.decoding.lists import is_list, items_of
from app.domain.errors import InvalidManifest

ITEM = {"kind": "MxJob"}


def a_list(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)} | fields


@pytest.mark.parametrize(
    "document", [a_list(ITEM), a_list(*[ITEM] * 100), a_list(ITEM, metadata={"resourceVersion": ""})]
)
def test_the_items_of_a_list(document: dict[str, Any]) -> None:
    assert is_list(document)
    assert items_of(document) == document["items"]


@pytest.mark.parametrize(
    ("document", "errors"),
    [
        (a_list(), [("/items", "Required")]),
        (a_list(items=None), [("/items", "Required")]),
        (a_list(items={"0": ITEM}), [("/items", "Required")]),
        (a_list(*[ITEM] * 101), [("/items", "TooManyItems")]),
        (a_list(ITEM, apiVersion="v2"), [("/apiVersion", "UnknownKind")]),
        (a_list(ITEM, apiVersion=None), [("/apiVersion", "UnknownKind")]),
        (a_list(ITEM, item=[]), [("/item", "UnknownField")]),
        (a_list(ITEM, 7, a_list(ITEM)), [("/items/1", "InvalidType"), ("/items/2/kind", "NestedList")]),
    ],
)
def test_wrong_lists(document: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidManifest) as refused:
        items_of(document)
    assert [(error.pointer, error.code) for error in refused.value.errors] == errors
