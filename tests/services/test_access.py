"""Authentication of requests, roles, and the cache of verified tokens."""

from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.access.credentials import Role
from app.domain.access.grants import Grant
from app.domain.errors import Forbidden, NotFound, Unauthenticated
from app.services import access as access_module
from app.services.access import OpenAccess, Principal, TokenAccess, Verb, require

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return self.seconds


def principal(role: Role, *namespaces: str) -> Principal:
    return Principal(id="t", actor=Actor("t"), grants=(Grant(role, frozenset(namespaces) or None),))


@pytest.mark.parametrize(
    ("role", "verb", "allowed"),
    [
        (Role.VIEWER, Verb.READ, True),
        (Role.VIEWER, Verb.SUBMIT, False),
        (Role.VIEWER, Verb.CONTROL, False),
        (Role.SUBMITTER, Verb.READ, True),
        (Role.SUBMITTER, Verb.SUBMIT, True),
        (Role.SUBMITTER, Verb.CONTROL, True),
        (Role.ADMIN, Verb.CONTROL, True),
    ],
)
def test_roles(role: Role, verb: Verb, *, allowed: bool) -> None:
    for caller in (principal(role), principal(role, "mine")):
        with nullcontext() if allowed else pytest.raises(Forbidden, match=f"the role {role}"):
            require(caller, verb, "mine")
    with pytest.raises(NotFound):
        require(principal(role, "mine"), verb, "theirs")


def test_grants_combine_and_do_not_spread() -> None:
    grants = (Grant(Role.VIEWER), Grant(Role.ADMIN, frozenset({"mine"})), Grant(Role.SUBMITTER, frozenset({"ours"})))
    caller = Principal(id="u", actor=Actor("u"), grants=grants)
    assert (caller.namespaces, caller.role, caller.administers) == (None, Role.ADMIN, False)
    assert [caller.role_in(namespace) for namespace in ("mine", "ours", "theirs")] == [
        Role.ADMIN,
        Role.SUBMITTER,
        Role.VIEWER,
    ]
    require(caller, Verb.CONTROL, "ours")
    with pytest.raises(Forbidden, match="the role viewer"):
        require(caller, Verb.SUBMIT, "theirs")


async def test_open_access_makes_every_caller_an_admin() -> None:
    caller = await OpenAccess().authenticate(None)
    assert (caller.role, caller.namespaces) == (Role.ADMIN, None)


async def test_a_revoked_token_is_refused_within_seconds(db: Database) -> None:
    clock = ManualClock()
    access = TokenAccess(db, clock)
    token, text = await tokens.create(db, name="ci", role="submitter", namespaces=["a", "b"], now=NOW)
    header = f"bearer {text}"
    known = await access.authenticate(header)
    assert (known.id, known.actor, known.role) == (token.id, Actor("ci", f"token:{token.id}"), Role.SUBMITTER)
    assert known.namespaces == frozenset({"a", "b"})
    assert await tokens.revoke(db, token.id, NOW)
    clock.seconds += 4
    assert await access.authenticate(header) == known
    clock.seconds += 2
    with pytest.raises(Unauthenticated):
        await access.authenticate(header)


async def test_a_star_means_every_namespace(db: Database) -> None:
    _, text = await tokens.create(db, name="all", role="viewer", namespaces=["*"], now=NOW)
    assert (await TokenAccess(db, ManualClock()).authenticate(f"Bearer {text}")).namespaces is None


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer é", "Basic x", "Bearer " + "x" * 600, "Bearer jg_a_b"])
async def test_an_invalid_header_is_refused(header: str | None, db: Database) -> None:
    with pytest.raises(Unauthenticated):
        await TokenAccess(db, ManualClock()).authenticate(header)


async def test_invented_tokens_do_not_displace_those_of_callers(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "_MAX_CACHED", 2)
    access = TokenAccess(db, ManualClock())
    token, text = await tokens.create(db, name="ci", role="viewer", namespaces=["*"], now=NOW)
    known = await access.authenticate(f"Bearer {text}")
    for number in range(5):
        with pytest.raises(Unauthenticated):
            await access.authenticate(f"Bearer jg_invented_{number}")
    # The entry of the caller is still used: without one, the revoked token would be refused at once.
    assert await tokens.revoke(db, token.id, NOW)
    assert await access.authenticate(f"Bearer {text}") == known
