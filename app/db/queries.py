"""Queries of lists, from the newest to the oldest, and conditions on namespaces.

SQL fragments are constants; values are always bound parameters. Pages follow an index.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import Operator, Requirement


class Cursor(NamedTuple):
    """The last item of a page."""

    created_at: datetime
    uid: UUID


class Query:
    """Collects conditions and their arguments, and numbers these. `select` ends with the name of the table."""

    def __init__(self, select: str, alias: str) -> None:
        self._select = f"{select} AS {alias}"
        self._conditions: list[str] = []
        self.alias = alias
        self.arguments: list[Any] = []

    def add(self, condition: str, *arguments: Any) -> None:
        """Add a constant condition, in which `{}` stands for each argument."""
        first = len(self.arguments) + 1
        self._conditions.append(condition.format(*(f"${first + n}" for n in range(len(arguments)))))
        self.arguments.extend(arguments)

    def text(self, limit: int) -> str:
        conditions = " AND ".join(self._conditions) or "true"
        # The uid orders rows of the same time, so that no page repeats or skips one.
        order = f"{self.alias}.created_at DESC, {self.alias}.uid DESC"
        return f"{self._select} WHERE {conditions} ORDER BY {order} LIMIT {int(limit)}"


def restrict_after(query: Query, cursor: Cursor | None) -> None:
    if cursor is not None:
        # A comparison of rows follows the index, so the query reads none of the earlier pages.
        query.add(f"({query.alias}.created_at, {query.alias}.uid) < ({{}}, {{}})", cursor.created_at, cursor.uid)


def restrict_namespaces(query: Query, namespaces: NamespaceSet) -> None:
    column, names = f"{query.alias}.namespace", namespaces.names
    if names is None:
        # The names that begin with `kube-` are reserved, however many there are.
        query.add(f"NOT starts_with({column}, 'kube-') AND {column} <> ALL({{}}::text[])", namespaces.excluded)
    elif len(names) == 1:
        query.add(f"{column} = {{}}", names[0])  # can use the index that begins with the namespace
    else:
        query.add(f"{column} = ANY({{}}::text[])", names)


def restrict_labels(query: Query, requirements: Sequence[Requirement]) -> None:
    labels = f"{query.alias}.labels"
    for requirement in requirements:
        match requirement.operator:
            case Operator.EXISTS:
                query.add(f"{labels} ? {{}}", requirement.key)
            case Operator.DOES_NOT_EXIST:
                query.add(f"NOT {labels} ? {{}}", requirement.key)
            case Operator.IN:
                query.add(f"{labels} ->> {{}} = ANY({{}}::text[])", requirement.key, list(requirement.values))
            case Operator.NOT_IN:
                values = list(requirement.values)
                # As in Kubernetes, an object without the label matches `notin`. Its comparison is null.
                query.add(f"({labels} ->> {{}} = ANY({{}}::text[])) IS NOT TRUE", requirement.key, values)


def in_namespaces(first: int, column: str = "namespace") -> str:
    """Return the condition that a namespace is in a set. `namespace_arguments` are its parameters, from `first` on."""
    return (
        f"(${first}::text[] IS NULL OR {column} = ANY(${first})) AND {column} <> ALL(${first + 1}::text[])"
        f" AND NOT starts_with({column}, 'kube-')"
    )


def namespace_arguments(namespaces: NamespaceSet) -> tuple[list[str] | None, list[str]]:
    return namespaces.names, namespaces.excluded
