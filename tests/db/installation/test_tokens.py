"""A token opens what it was made for until it is revoked, and the database could not tell its secret."""

import asyncio

import pytest

from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.errors import Conflict
from tests.db.factories import NOW, later


async def test_a_token_is_verified_listed_touched_and_revoked(db: Database) -> None:
    token, text = await tokens.create(db, name="ci", role="submitter", namespaces=["team-a", "*"], now=NOW)
    assert text.startswith(f"jg_{token.id}_")
    assert await tokens.verify(db, text) == token
    for first, second in ((10, 20), (100, 110)):
        await tokens.touch(db, token, later(first))
        (just_read,) = await tokens.list_all(db)
        # A process that has read the token before, and one that reads it now.
        await tokens.touch(db, token, later(second))
        await tokens.touch(db, just_read, later(second))
        assert [one.last_used_at for one in await tokens.list_all(db)] == [later(first)]
    (listed,) = await tokens.list_all(db)
    assert (listed.role, listed.namespaces) == ("submitter", ["team-a", "*"])
    assert await tokens.revoke(db, token.id, later(30))
    assert await tokens.verify(db, text) is None
    assert not await tokens.revoke(db, "nobody", NOW)


async def test_two_live_tokens_never_have_the_same_name(db: Database) -> None:
    async def create(name: str) -> tokens.NewToken:
        return await tokens.create(db, name=name, role="viewer", namespaces=["*"], now=NOW)

    outcomes = await asyncio.gather(*(create("ci") for _ in range(4)), return_exceptions=True)
    (made,) = [one for one in outcomes if isinstance(one, tokens.NewToken)]
    refused = [one for one in outcomes if isinstance(one, Conflict)]
    assert len(refused) == 3
    assert made.token.id in str(refused[0])
    await create("CI")  # another name
    assert await tokens.revoke(db, made.token.id, NOW)
    assert (await create("ci")).token.id != made.token.id


@pytest.mark.parametrize("change", ["secret", "id", "prefix", "nul", "empty", "surrogate"])
async def test_no_other_text_is_accepted_as_the_token(db: Database, change: str) -> None:
    token, text = await tokens.create(db, name="ci", role="admin", namespaces=["*"], now=NOW)
    wrong = {
        "secret": text[:-1] + ("a" if text[-1] != "a" else "b"),
        "id": text.replace(token.id, "x" * 10),
        "prefix": "jh" + text[2:],
        "nul": f"jg_{token.id}\0_x",
        "empty": "",
        "surrogate": "jg_\ud800_x",
    }
    assert await tokens.verify(db, wrong[change]) is None


async def test_the_secret_is_nowhere_in_the_database(db: Database) -> None:
    _, text = await tokens.create(db, name="ci", role="admin", namespaces=["*"], now=NOW)
    async with db.read() as connection:
        row = await connection.fetchrow("SELECT * FROM api_tokens")
    assert text.rpartition("_")[2] not in repr(tuple(row))
