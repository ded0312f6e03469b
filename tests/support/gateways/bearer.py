"""Tokens for the requests of tests."""

from datetime import UTC, datetime

from app.db.installation import tokens
from app.db.postgres.engine import Database


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a test is its own clock


async def free_name(db: Database, role: str) -> str:
    """Return "a viewer" for the first token with this role, then "a viewer 2" and so on."""
    number = sum(token.name.startswith(f"a {role}") for token in await tokens.list_all(db))
    return f"a {role} {number + 1}" if number else f"a {role}"


async def bearer(database_url: str, role: str, *namespaces: str) -> dict[str, str]:
    """Create a token, and return the header that sends it."""
    db = await Database.open(database_url, pool_size=2)
    try:
        _, secret = await tokens.create(
            db, name=await free_name(db, role), role=role, namespaces=namespaces, now=_now()
        )
    finally:
        await db.close()
    return {"Authorization": f"Bearer {secret}"}


async def revoke_all(database_url: str) -> None:
    """Revoke every token."""
    db = await Database.open(database_url, pool_size=2)
    try:
        for token in await tokens.list_all(db):
            assert await tokens.revoke(db, token.id, _now())
    finally:
        await db.close()
