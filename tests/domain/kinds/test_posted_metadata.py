"""The name and the namespace of a posted manifest."""

from typing import Any

import pytest

from app.domain.errors import InvalidManifest
from app.domain.kinds.posted_metadata import add_name, require_namespace


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"generateName": "train-"}, "train-bcdfg"),
        ({"generateName": "a" * 70}, "a" * 58 + "bcdfg"),
        ({"generateName": "train-", "name": "kept"}, None),
        ({"generateName": "train-", "name": ""}, None),
        ({"generateName": ""}, None),
        ({"generateName": 7}, None),
        ({}, None),
        ("no mapping", None),
    ],
)
def test_a_name_is_generated_only_from_a_base_without_a_name(metadata: Any, name: str | None) -> None:
    document = {"metadata": metadata}
    after, generated = add_name(document, lambda: "bcdfg")
    assert (after, generated) == (({"metadata": {**metadata, "name": name}}, True) if name else (document, False))


@pytest.mark.parametrize("metadata", [{}, {"namespace": "team"}, {"namespace": 7}, "no mapping", None])
def test_a_document_may_name_the_namespace_of_its_path(metadata: Any) -> None:
    assert require_namespace({"metadata": metadata}, "team") == {"metadata": metadata}


def test_a_document_of_another_namespace_is_refused() -> None:
    with pytest.raises(InvalidManifest) as refused:
        require_namespace({"metadata": {"namespace": "other"}}, "team")
    (error,) = refused.value.errors
    assert (error.pointer, error.code) == ("/metadata/namespace", "NamespaceMismatch")
    assert error.detail == "the manifest is for the namespace other, and the request for team"
    assert error.accepted == "team, or none"
