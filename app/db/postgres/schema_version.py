"""Compare the schema of a database with the one that this version needs.

Every process does this when it starts. So this module reads the migrations as text: the import of Alembic would take a
tenth of the time of a start.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import asyncpg

from app.bundled import bundled
from app.db.postgres.engine import Connection, Database

_IDENTIFIER: Final = re.compile(r"""^(revision|down_revision)\b[^=\n]*=\s*["'](\w+)["']""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revisions of a set of migrations. `heads` are those that no other revision follows."""

    known: frozenset[str]
    heads: frozenset[str]


def revisions() -> Revisions:
    """Return the revisions of this version."""
    files = bundled("migrations").joinpath("versions").iterdir()
    return revisions_in(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".py"))


def revisions_in(scripts: Iterable[str]) -> Revisions:
    """Read the revisions from the text of migrations."""
    found = [dict(_IDENTIFIER.findall(script)) for script in scripts]
    known = frozenset(script["revision"] for script in found if "revision" in script)
    followed = {script["down_revision"] for script in found if "down_revision" in script}
    return Revisions(known=known, heads=known - followed)


async def check_database(url: str) -> list[str]:
    """Open a connection, and return why this version cannot use the database; nothing if its schema is current.

    Raises:
        DatabaseUnavailable: the server does not answer.
    """
    db = await Database.open(url, pool_size=1)
    try:
        async with db.read() as connection:
            return await check(connection)
    finally:
        await db.close()


async def check(connection: Connection) -> list[str]:
    """Return why this version cannot use the database; nothing if its schema is current."""
    expected = revisions()
    present = await _present(connection)
    if present == expected.heads:
        return []
    if unknown := present - expected.known:
        return [newer(unknown)]
    has = ", ".join(sorted(present)) or "no schema of jobgate"
    return [f"the database has {has} and this version needs {', '.join(sorted(expected.heads))}: run `jobgate migrate`"]


async def _present(connection: Connection) -> frozenset[str]:
    try:
        rows = await connection.fetch("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return frozenset()
    return frozenset(row["version_num"] for row in rows)


def newer(unknown: Collection[str]) -> str:
    """Return the message about a database with revisions that this version does not know."""
    return (
        f"the database has {', '.join(sorted(unknown))}, which this version does not know: a newer version of jobgate "
        "has migrated it; replace this process by one of that version"
    )
