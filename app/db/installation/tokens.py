"""API tokens. The secret is returned once, at creation; the database stores its hash.

A token is `jg_<id>_<secret>`. The secret has 190 random bits, so a fast hash is as safe as a slow one.
"""

import hashlib
import hmac
import secrets
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Database
from app.domain.errors import Conflict, shorten
from app.models.requests import api_tokens

PREFIX = "jg"
_ALPHABET = string.ascii_letters + string.digits
_ID_LENGTH = 10
_SECRET_LENGTH = 32
# Otherwise every client would cause a write each time its cached token is verified again.
_TOUCH_INTERVAL = timedelta(minutes=1)
# Compared with the secret of an unknown token, so that the response time does not reveal which ids exist.
_NO_HASH = bytes(hashlib.sha256().digest_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`namespaces` may contain "*" for all namespaces."""

    id: str
    name: str
    role: str
    namespaces: Sequence[str]
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


_COLUMNS: Final = record_columns(api_tokens, Token)
# Tokens of earlier versions may have equal names, so a unique index could not be built. The lock stops other creations
# until the commit.
_LOCK = "LOCK TABLE api_tokens IN SHARE ROW EXCLUSIVE MODE"
_LIVES = "SELECT id FROM api_tokens WHERE name = $1 AND revoked_at IS NULL"
_CREATE = """
INSERT INTO api_tokens (id, name, secret_hash, role, namespaces, created_at) VALUES ($1, $2, $3, $4, $5, $6)
"""
_LIST = f"SELECT {_COLUMNS} FROM api_tokens ORDER BY created_at, id"  # noqa: S608  columns of our own
# A repeated revocation keeps the first time.
_REVOKE = "UPDATE api_tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING id"
_VERIFY = f"SELECT secret_hash, {_COLUMNS} FROM api_tokens WHERE id = $1 AND revoked_at IS NULL"  # noqa: S608  as above
_VALID = f"SELECT {_COLUMNS} FROM api_tokens WHERE id = ANY($1::text[]) AND revoked_at IS NULL"  # noqa: S608  as above
_TOUCH = "UPDATE api_tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)"


class NewToken(NamedTuple):
    """`secret` is the complete text of the token. It cannot be read again."""

    token: Token
    secret: str


async def create(db: Database, *, name: str, role: str, namespaces: Sequence[str], now: datetime) -> NewToken:
    """Create a token.

    Raises:
        Conflict: a token that is not revoked has the name.
    """
    token = Token(id=_random(_ID_LENGTH), name=name, role=role, namespaces=list(namespaces), created_at=now)
    secret = _random(_SECRET_LENGTH)
    async with db.begin() as connection:
        await connection.execute(_LOCK)
        holder = await connection.fetchval(_LIVES, name)
        if holder is not None:
            detail = f"the token {holder} has the name {shorten(name)}: choose another name, or revoke that token"
            raise Conflict(detail, code="NameTaken")
        await connection.execute(_CREATE, token.id, name, _hash(secret), role, list(namespaces), now)
    return NewToken(token, f"{PREFIX}_{token.id}_{secret}")


async def list_all(db: Database) -> list[Token]:
    """Return all tokens, including revoked ones, the oldest first."""
    async with db.read() as connection:
        return [Token(**row) for row in await connection.fetch(_LIST)]


async def revoke(db: Database, token_id: str, now: datetime) -> bool:
    """Revoke a token. Return False if it does not exist."""
    async with db.read() as connection:
        return await connection.fetchval(_REVOKE, token_id, now) is not None


async def verify(db: Database, text: str) -> Token | None:
    """Return the token with this text, or None if it is malformed, unknown or revoked."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not _is_plain(token_id) or not _is_plain(secret):
        return None
    async with db.read() as connection:
        row = await connection.fetchrow(_VERIFY, token_id)
    right = hmac.compare_digest(_hash(secret), _NO_HASH if row is None else row["secret_hash"])
    if row is None or not right:
        return None
    return Token(**_COLUMNS.read(row))


async def valid(db: Database, ids: Collection[str]) -> list[Token]:
    """Return those of the tokens that are not revoked."""
    async with db.read() as connection:
        return [Token(**row) for row in await connection.fetch(_VALID, list(ids))]


async def touch(db: Database, token: Token, now: datetime) -> None:
    """Store the time of the last use of a token that was just read, at most once per _TOUCH_INTERVAL."""
    before = now - _TOUCH_INTERVAL
    if token.last_used_at is not None and token.last_used_at >= before:
        return
    async with db.read() as connection:
        # Another process may have stored it meanwhile.
        await connection.execute(_TOUCH, token.id, now, before)


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isascii() and text.isalnum()


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
