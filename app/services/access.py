"""Authentication and authorization.

    Authorization header ─▶ Principal(grants) ─▶ require(verb, namespace)

For a principal, a namespace outside its own does not exist: it gets NotFound, never Forbidden.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from typing_extensions import override

from app.base.caches import BoundedCache
from app.base.clock import Clock
from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.access.actors import ANONYMOUS, Actor
from app.domain.access.credentials import Role
from app.domain.access.grants import Grant, namespaces_of, strongest, union
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import Forbidden, NotFound, Unauthenticated, shorten
from app.domain.kubernetes import names

# How long a verified token is cached: a revoked token works this long at most, and a polling client causes one query in
# this time.
_CACHE_SECONDS: Final = 5.0
_MAX_CACHED: Final = 4096  # bounds the memory that invented tokens can use
# A token of jobgate has 46 characters. Longer headers are refused before they are hashed.
_MAX_TOKEN_LENGTH: Final = 512


class Verb(StrEnum):
    """What a request does to resources."""

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
    """The caller of a request.

    Args:
        id: the id of the token, or of the user at the OIDC issuer. Idempotency keys of different ids never conflict.
        actor: the name and the identity that records have.
        grants: the roles of the caller and the namespaces in which it has them; at least one.
        expires_at: when the token ceases to be accepted; None if it stays valid until it is revoked.
        is_revocable: whether Postgres can revoke or change the token. A signed token is valid until it expires.
    """

    id: str
    actor: Actor
    grants: tuple[Grant, ...]
    expires_at: datetime | None = None
    is_revocable: bool = True
    namespaces: frozenset[str] | None = field(init=False, compare=False)
    """The namespaces that the caller may see, which are those of all grants; None means all of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespaces", union(self.grants))

    def role_in(self, namespace: str) -> Role | None:
        """Return the strongest role of the caller in the namespace; None if it may not see it."""
        return strongest(grant.role for grant in self.grants if grant.reaches(namespace))

    @property
    def role(self) -> Role:
        """The strongest role of the caller anywhere."""
        return strongest(grant.role for grant in self.grants) or Role.VIEWER

    @property
    def administers(self) -> bool:
        """Whether the caller is an admin of all namespaces, and so of the whole installation.

        Exemptions from the pod policy require this: a pod that is exempt can take over its node, and with it the pods
        of every namespace.
        """
        return any(grant.namespaces is None and Verb.ADMINISTER in _ALLOWED[grant.role] for grant in self.grants)

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at


def find_refused(namespaces: Sequence[str], served: NamespaceSet) -> list[str]:
    """Return a message for each name that cannot be a namespace of a token. `served` are the served namespaces."""
    wrong = ((name, names.dns_label(name)) for name in namespaces)
    return [
        f"{shorten(name)}: {problem or 'this namespace is not served here'}"
        for name, problem in wrong
        if problem or name not in served
    ]


def require(principal: Principal, verb: Verb, namespace: str) -> None:
    """Require that the principal may do this in the namespace.

    Raises:
        NotFound: the principal may not see the namespace. The answer is the same if the namespace does not exist.
        Forbidden: the principal may see the namespace, but its role does not allow the verb.
    """
    role = principal.role_in(namespace)
    if role is None:
        raise NotFound("there is no such namespace")
    if verb not in _ALLOWED[role]:
        raise Forbidden(f"the role {role} does not allow the verb {verb} in this namespace")


class Access(Protocol):
    """Authenticates requests."""

    async def authenticate(self, authorization: str | None) -> Principal:
        """Return the caller with this Authorization header.

        Raises:
            Unauthenticated: the header is missing or malformed, or its token is not valid.
        """
        ...

    async def current(self, principals: Collection[Principal]) -> Mapping[Principal, Principal]:
        """Return what these principals of revocable tokens are now. Those of revoked tokens are missing."""
        ...


class OpenAccess(Access):
    """Treats each caller as an admin of all namespaces. Only for a loopback interface."""

    _anonymous = Principal(id="", actor=ANONYMOUS, grants=(Grant(Role.ADMIN),))

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        return self._anonymous

    @override
    async def current(self, principals: Collection[Principal]) -> Mapping[Principal, Principal]:
        return {principal: principal for principal in principals}


# By the digest of a token: until when the entry is used, and the caller.
_Cache: TypeAlias = BoundedCache[bytes, tuple[float, Principal | None]]


class TokenAccess(Access):
    """Verifies bearer tokens in Postgres, and caches valid and invalid tokens for a few seconds."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._valid: _Cache = BoundedCache(_MAX_CACHED)
        # Apart from the others, so that invented tokens do not displace those of callers.
        self._invalid: _Cache = BoundedCache(_MAX_CACHED)

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        token = bearer(authorization)
        key = hashlib.sha256(token.encode()).digest()  # the cache holds no secrets
        until, principal = self._valid.get(key) or self._invalid.get(key) or (0.0, None)
        if until <= self._clock.monotonic():
            principal = await self._verify(token)
            self._cache(key, principal)
        if principal is None:
            raise Unauthenticated("the token is unknown or has been revoked", code="InvalidToken")
        return principal

    @override
    async def current(self, principals: Collection[Principal]) -> Mapping[Principal, Principal]:
        found = {
            token.id: _principal(token) for token in await tokens.valid(self._db, {each.id for each in principals})
        }
        return {principal: found[principal.id] for principal in principals if principal.id in found}

    async def _verify(self, token: str) -> Principal | None:
        found = await tokens.verify(self._db, token)
        if found is None:
            return None
        await tokens.touch(self._db, found, self._clock.now())
        return _principal(found)

    def _cache(self, key: bytes, principal: Principal | None) -> None:
        kept, other = (self._invalid, self._valid) if principal is None else (self._valid, self._invalid)
        other.pop(key)
        kept.put(key, (self._clock.monotonic() + _CACHE_SECONDS, principal))


def _principal(token: tokens.Token) -> Principal:
    return Principal(
        id=token.id,
        actor=Actor.token(token.id, token.name),
        grants=(Grant(Role(token.role), namespaces_of(token.namespaces)),),
    )


def bearer(authorization: str | None, max_length: int = _MAX_TOKEN_LENGTH) -> str:
    """Return the token of an Authorization header.

    Raises:
        Unauthenticated: the header is missing, too long, or has another form than `Bearer <token>`.
    """
    if authorization is None:
        raise Unauthenticated("the request has no token: send Authorization: Bearer <token>")
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or not token.isascii() or len(token) > max_length:
        raise Unauthenticated("the Authorization header is not of the form: Bearer <token>", code="InvalidToken")
    return token
