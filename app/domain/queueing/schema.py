"""What a version of Kueue accepts, as the schema of its API says. Pure."""

from collections.abc import Iterator
from typing import Any, Final

SCHEMA: Final = "/openapi/v3/apis/kueue.x-k8s.io/v1beta2"
"""The path of the OpenAPI document of Kueue's API."""
_BOUND: Final = ("properties", "spec", "properties", "podSets", "maxItems")
_KIND: Final = "x-kubernetes-group-version-kind"


def most_pod_sets_of(document: Any) -> int | None:
    """Return how many pod sets a Workload may have; None if the document does not say so."""
    for schema in _schemas(document):
        kinds = schema.get(_KIND)
        if isinstance(kinds, list) and any(isinstance(kind, dict) and kind.get("kind") == "Workload" for kind in kinds):
            found: Any = schema
            for field in _BOUND:
                found = found.get(field) if isinstance(found, dict) else None
            return found if isinstance(found, int) and found > 0 else None
    return None


def _schemas(document: Any) -> Iterator[dict[str, Any]]:
    for field in ("components", "schemas"):
        document = document.get(field) if isinstance(document, dict) else None
    for schema in document.values() if isinstance(document, dict) else ():
        if isinstance(schema, dict):
            yield schema
