"""The order of lists, and the condition that a row belongs to a set of namespaces."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.domain.access.namespaces import NamespaceSet


class Cursor(NamedTuple):
    """A place in a list. Lists are ordered by creation time, then by uid, from the newest to the oldest object."""

    created_at: datetime
    uid: UUID


def in_namespaces(first: int, column: str = "namespace") -> str:
    """Return the condition that a namespace is in a set. `namespace_arguments` are its parameters, from `first` on."""
    return (
        f"(${first}::text[] IS NULL OR {column} = ANY(${first})) AND {column} <> ALL(${first + 1}::text[])"
        f" AND NOT starts_with({column}, 'kube-')"
    )


def namespace_arguments(namespaces: NamespaceSet) -> tuple[list[str] | None, list[str]]:
    return namespaces.names, namespaces.excluded
