"""Parts of statements: the order of lists, and conditions on sets of namespaces and on arrays of keys."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.domain.access.namespaces import NamespaceSet


class Cursor(NamedTuple):
    """A place in a list. Lists are ordered by creation time, then by uid, from the newest to the oldest object."""

    created_at: datetime
    uid: UUID


def any_length(parameter: str) -> str:
    """Return an SQL expression for an array, such as `$1::uuid[]`, whose length the planner does not know.

    With the length, it would plan the statement again for each short array, which takes longer than executing it.
    """
    return f"(SELECT {parameter})::{parameter.partition('::')[2]}"


def in_namespaces(first: int, column: str = "namespace") -> str:
    """Return the condition that a namespace is in a set. `namespace_arguments` are its parameters, from `first` on.

    A former namespace (`app/db/former_namespaces.py`) is in the sets that have its name: the controller ends its jobs.
    """
    name = f"split_part({column}, '~', 1)"
    return (
        f"(${first}::text[] IS NULL OR {name} = ANY(${first})) AND {name} <> ALL(${first + 1}::text[])"
        f" AND NOT starts_with({column}, 'kube-')"
    )


def namespace_arguments(namespaces: NamespaceSet) -> tuple[list[str] | None, list[str]]:
    return namespaces.names, namespaces.excluded
