"""Sets of namespaces, finite or not: the namespaces of a token, and those that an installation serves."""

from dataclasses import dataclass
from typing import Final

from typing_extensions import override

# Kubernetes reserves this prefix for its own namespaces.
_RESERVED_PREFIX: Final = "kube-"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamespaceSet:
    """The namespaces of `only` (None means all) except those of `never`.

    A namespace with the prefix kube- is never a member.
    """

    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *names: str) -> "NamespaceSet":
        return cls(only=frozenset(names))

    @override
    def __repr__(self) -> str:
        # The same in every process, because page tokens are bound to it. The order of a set is not.
        return f"NamespaceSet(only={self.names}, never={self.excluded})"

    def __contains__(self, namespace: object) -> bool:
        # The prefix is excluded here and not by the callers, so that no configuration can include a system namespace.
        if not isinstance(namespace, str) or namespace in self.never or namespace.startswith(_RESERVED_PREFIX):
            return False
        return self.only is None or namespace in self.only

    def __and__(self, other: "NamespaceSet") -> "NamespaceSet":
        finite = [names for names in (self.only, other.only) if names is not None]
        only = frozenset.intersection(*finite) if finite else None
        return NamespaceSet(only=only, never=self.never | other.never)

    @property
    def names(self) -> list[str] | None:
        """The members in alphabetical order; None if the set is infinite."""
        return None if self.only is None else sorted(name for name in self.only if name in self)

    @property
    def excluded(self) -> list[str]:
        """The namespaces that an infinite set excludes, except those that begin with kube-."""
        return sorted(self.never)


def former_name(namespace: str, uid: str) -> str:
    """Return the name under which objects of a namespace are stored after another one has got its name.

    No namespace of Kubernetes can have this name, so no token and no group can be granted it.
    """
    return f"{namespace}~{uid}"


def is_former(namespace: str) -> bool:
    return "~" in namespace


def base_name(namespace: str) -> str:
    """Return the name of a namespace, and of a former namespace the name that it had."""
    return namespace.partition("~")[0]


EVERY_NAMESPACE: Final = NamespaceSet()
