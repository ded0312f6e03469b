"""The part of a query's condition that restricts it to the namespaces of a set."""

from app.domain.namespaces import NamespaceSet


def in_namespaces(first: int, column: str = "namespace") -> str:
    """The condition; `namespace_arguments` are its arguments, which are numbered from `first` on."""
    return (
        f"(${first}::text[] IS NULL OR {column} = ANY(${first})) AND {column} <> ALL(${first + 1}::text[])"
        f" AND NOT starts_with({column}, 'kube-')"
    )


def namespace_arguments(namespaces: NamespaceSet) -> tuple[list[str] | None, list[str]]:
    return namespaces.names, namespaces.excluded
