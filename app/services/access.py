"""Who is calling, and what they may do where.

    Authorization header ─▶ Principal(role, namespaces) ─▶ may(verb, namespace)

A namespace that a principal may not see does not exist for it.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from typing_extensions import override

from app.clock import Clock
from app.db import tokens
from app.db.engine import Database
from app.domain.access.credentials import Role
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import Forbidden, NotFound, Unauthenticated, shorten
from app.domain.kubernetes import names

# A revoked token works for this long at most, and a polling client costs one look-up in this time.
_TRUSTED_SECONDS: Final = 5.0
_MAX_REMEMBERED: Final = 4096
_MAX_TOKEN_LENGTH: Final = 512
ANY_NAMESPACE: Final = "*"  # in a stored token


class Verb(StrEnum):
    """What a request does to jobs."""

    READ = "read"
    SUBMIT = "submit"
    CONTROL = "control"  # edit, pause, resume, cancel, delete
    ADMINISTER = "administer"  # tokens, exemptions from the pod policy, the capacity of the cluster


_ALLOWED: Final = {
    Role.VIEWER: frozenset({Verb.READ}),
    Role.SUBMITTER: frozenset({Verb.READ, Verb.SUBMIT, Verb.CONTROL}),
    Role.ADMIN: frozenset(Verb),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A caller. `namespaces` None is all of them; `id` scopes idempotency keys."""

    id: str
    name: str
    role: Role
    namespaces: frozenset[str] | None = None

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    @property
    def administers(self) -> bool:
        """Whether the caller may decide for the whole installation: an admin of all namespaces.

        What an admin exempts from the pod policy can take over a node, and with it every namespace.
        """
        return self.namespaces is None and Verb.ADMINISTER in _ALLOWED[self.role]


def may(principal: Principal, verb: Verb, namespace: str) -> bool:
    return principal.sees(namespace) and verb in _ALLOWED[principal.role]


def refused_namespaces(namespaces: Sequence[str], served: NamespaceSet) -> list[str]:
    """A sentence about each namespace that a new token cannot reach."""
    wrong = ((name, names.dns_label(name)) for name in namespaces)
    return [
        f"{shorten(name)}: {problem or 'this namespace is not served here'}"
        for name, problem in wrong
        if problem or name not in served
    ]


def require(principal: Principal, verb: Verb, namespace: str) -> None:
    """Refuse what `may` does not allow.

    Raises:
        NotFound: the namespace is not the principal's to see, and we do not say whether it exists.
        Forbidden: it is, but not for this.
    """
    if may(principal, verb, namespace):
        return
    if not principal.sees(namespace):
        raise NotFound("there is no such namespace")
    raise Forbidden(f"the role {principal.role} does not allow to {verb} in this namespace")


class Access(Protocol):
    """How a request's Authorization header becomes a principal."""

    async def authenticate(self, authorization: str | None) -> Principal:
        """The caller.

        Raises:
            Unauthenticated: it is nobody we know.
        """
        ...

    async def current(self, ids: Collection[str]) -> Mapping[str, Principal]:
        """Those of the principals with these ids that are still allowed in, as Postgres has them now, by id."""
        ...


class OpenAccess(Access):
    """Everybody may do everything: for a laptop's loopback interface and nothing else."""

    _somebody = Principal(id="", name="anonymous", role=Role.ADMIN)

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        return self._somebody

    @override
    async def current(self, ids: Collection[str]) -> Mapping[str, Principal]:
        return {self._somebody.id: self._somebody}


class TokenAccess(Access):
    """Bearer tokens kept in Postgres, remembered briefly whether good or bad."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._remembered: OrderedDict[bytes, tuple[float, Principal | None]] = OrderedDict()

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        token = bearer(authorization)
        key = hashlib.sha256(token.encode()).digest()
        until, principal = self._remembered.get(key, (0.0, None))
        if until <= self._clock.monotonic():
            principal = await self._verify(token)
            self._remember(key, principal)
        if principal is None:
            raise Unauthenticated("the token is unknown or has been revoked", code="InvalidToken")
        return principal

    @override
    async def current(self, ids: Collection[str]) -> Mapping[str, Principal]:
        return {found.id: _principal(found) for found in await tokens.valid(self._db, ids)}

    async def _verify(self, token: str) -> Principal | None:
        found = await tokens.verify(self._db, token)
        if found is None:
            return None
        await tokens.touch(self._db, found.id, self._clock.now())
        return _principal(found)

    def _remember(self, key: bytes, principal: Principal | None) -> None:
        self._remembered[key] = (self._clock.monotonic() + _TRUSTED_SECONDS, principal)
        self._remembered.move_to_end(key)
        while len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.popitem(last=False)


def _principal(token: tokens.Token) -> Principal:
    everywhere = ANY_NAMESPACE in token.namespaces
    return Principal(
        id=token.id,
        name=token.name,
        role=Role(token.role),
        namespaces=None if everywhere else frozenset(token.namespaces),
    )


def bearer(authorization: str | None) -> str:
    """The token of an Authorization header.

    Raises:
        Unauthenticated: there is none.
    """
    if authorization is None:
        raise Unauthenticated("the request carries no token: send Authorization: Bearer <token>")
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or not token.isascii() or len(token) > _MAX_TOKEN_LENGTH:
        raise Unauthenticated("the Authorization header is not of the form: Bearer <token>", code="InvalidToken")
    return token
