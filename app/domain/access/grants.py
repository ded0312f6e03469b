"""Which rights a caller has: grants, and the text that grants roles to the groups of an OIDC issuer."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.access.credentials import Role
from app.domain.errors import shorten
from app.domain.kubernetes import names

ANY_NAMESPACE: Final = "*"
"""In a stored token and in the text of grants: all namespaces."""
ANY_GROUP: Final = "*"
"""In the text of grants: every user of the issuer, with or without groups."""
_SEPARATORS: Final = re.compile(r"[;\n]")
_FORM: Final = "GROUP=ROLE:NAMESPACE,NAMESPACE"
# Each role includes the rights of those before it.
_RANKS: Final = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Grant:
    """A role in some namespaces; None means all of them."""

    role: Role
    namespaces: frozenset[str] | None = None

    def reaches(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces


def strongest(roles: Iterable[Role]) -> Role | None:
    """Return the role that includes the others; None if there are none."""
    return max(roles, key=_RANKS.__getitem__, default=None)


def union(grants: Collection[Grant]) -> frozenset[str] | None:
    """Return the namespaces that one of the grants reaches; None means all of them."""
    if any(grant.namespaces is None for grant in grants):
        return None
    return frozenset().union(*(grant.namespaces or () for grant in grants))


def namespaces_of(listed: Iterable[str]) -> frozenset[str] | None:
    """Return the namespaces of a list that may contain *; None means all of them."""
    found = frozenset(listed)
    return None if ANY_NAMESPACE in found else found


GroupGrants = Mapping[str, Sequence[Grant]]


def read_group_grants(text: str) -> GroupGrants:
    """Read `group=role:namespace,namespace` entries, separated by semicolons or line ends.

    The last = of an entry ends the group, so the group may be a distinguished name of LDAP.

    Raises:
        ValueError: an entry is not valid. The message names it.
    """
    found: dict[str, list[Grant]] = {}
    for entry in filter(None, map(str.strip, _SEPARATORS.split(text))):
        group, equals, rights = entry.rpartition("=")
        role, colon, listed = rights.partition(":")
        if not (equals and colon and group.strip()):
            raise ValueError(f"{shorten(entry)} is not of the form {_FORM}")
        grant = Grant(_role(role.strip()), _namespaces(listed))
        found.setdefault(group.strip(), []).append(grant)
    return found


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise ValueError(f"there is no role {shorten(text)}; the roles are {', '.join(Role)}") from None


def _namespaces(text: str) -> frozenset[str] | None:
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if not listed:
        raise ValueError(f"a grant names no namespace; {ANY_NAMESPACE} means all of them")
    for name in listed:
        if name != ANY_NAMESPACE and (problem := names.dns_label(name)):
            raise ValueError(f"the namespace {shorten(name)}: {problem}")
    return namespaces_of(listed)


def grants_of(groups: Iterable[str], granted: GroupGrants) -> tuple[Grant, ...]:
    """Return the grants of a user with these groups, without repetitions, in the order of the configuration."""
    own = {*groups, ANY_GROUP}
    return tuple(dict.fromkeys(grant for group, grants in granted.items() if group in own for grant in grants))
